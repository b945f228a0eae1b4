import { MAX_LINK_MESSAGE_BYTES } from "@fairlead/protocol/daemon-link";
import { REPORT_LIMITS, type WorkloadReport, workloadReportsSchema } from "@fairlead/protocol/workload";
import fc from "fast-check";
import { expect, test } from "vitest";
import { boundReports } from "./bound-reports.ts";

const text = fc
  .tuple(fc.string({ unit: "binary", minLength: 1, maxLength: 4 }), fc.integer({ min: 0, max: 1500 }))
  .map(([unit, times]) => unit.repeat(times));
const report: fc.Arbitrary<WorkloadReport> = fc.record({
  workloadId: fc.constant("wkl_1"),
  workloadType: fc.constant("WORKLOAD_TYPE_ENGINE" as const),
  ready: fc.boolean(),
  state: fc.constant("running" as const),
  version: text,
  image: text,
  imageDigest: text,
  generation: fc.nat(),
  models: fc.array(text, { maxLength: 300 }),
  startedAt: fc.option(text),
  restartCount: fc.nat(),
  lastExit: fc.option(fc.record({ code: fc.integer(), reason: text, at: text })),
  message: text,
});

test("the control plane accepts every report that the daemon sends, whatever engines, images and Docker say", () => {
  fc.assert(
    fc.property(fc.array(report, { maxLength: 5 }), fc.integer({ min: 1, max: 51 }), (some, times) => {
      const bounded = boundReports(Array.from({ length: times }, () => some).flat());
      expect(workloadReportsSchema.safeParse(bounded).error).toBeUndefined();
      expect(Buffer.byteLength(JSON.stringify(bounded))).toBeLessThan(MAX_LINK_MESSAGE_BYTES);
    }),
    { numRuns: 30, seed: 18 },
  );
});

test("values of usual length are reported unchanged", () => {
  const [usual] = fc.sample(report, { numRuns: 1, seed: 1 });
  const plain: WorkloadReport = {
    ...(usual as WorkloadReport),
    version: "1.2.3",
    image: "example/engine:1",
    imageDigest: "sha256:00",
    models: ["one", "two"],
    startedAt: "2026-01-01T00:00:00.000Z",
    lastExit: { code: 1, reason: "exit code 1", at: "2026-01-01T00:00:00.000Z" },
    message: "x".repeat(REPORT_LIMITS.message),
  };
  expect(boundReports([plain])).toEqual([plain]);
});

test("a model whose name is too long is left out, since a truncated name would be another model", () => {
  const [usual] = fc.sample(report, { numRuns: 1, seed: 1 });
  const bounded = boundReports([{ ...(usual as WorkloadReport), models: ["a", "x".repeat(300), "b"] }]);
  expect(bounded[0]?.models).toEqual(["a", "b"]);
});
