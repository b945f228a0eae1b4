import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { aDesiredState, anAgent, aSpec } from "../testing/builders.ts";
import { type ImageUse, MIN_AGE_MS, type PulledImage, removableImages } from "./image-rules.ts";

const NOW = 1_000 * MIN_AGE_MS;
const hoursAgo = (hours: number): number => NOW - hours * MIN_AGE_MS;

function image(name: string, changes: Partial<PulledImage> = {}): PulledImage {
  const at = hoursAgo(10);
  return {
    id: `sha256:${name}`,
    reference: `example/${name}`,
    workloadId: "wkl_engine",
    pulledAt: at,
    lastUsedAt: at,
    ...changes,
  };
}

function removable(use: Partial<ImageUse>): string[] {
  const desired = aDesiredState({ workloads: [aSpec({ image: "example/now" })] });
  return removableImages({ pulled: [], inUse: new Set(), desired, now: NOW, ...use }).map(({ id }) => id.slice(7));
}

describe("removable images", () => {
  const now = image("now");
  const before = image("before", { lastUsedAt: hoursAgo(5) });
  const older = image("older", { lastUsedAt: hoursAgo(6) });
  const oldest = image("oldest", { lastUsedAt: hoursAgo(9) });

  test("are all but the running one and its predecessor, least recently used first (coolify#8765)", () => {
    const pulled = [older, now, before, oldest];
    expect(removable({ pulled, inUse: new Set([now.id]) })).toEqual(["oldest", "older"]);
  });

  test("exclude the previous image of each workload, including an agent beside an engine", () => {
    const theirs = { workloadId: "agt_one", lastUsedAt: hoursAgo(8) };
    const [agentNow, agentBefore] = [
      image("agent-now", theirs),
      image("agent-before", { ...theirs, lastUsedAt: hoursAgo(9) }),
    ];
    const desired = aDesiredState({
      workloads: [aSpec({ image: "example/now" }), anAgent({ image: "example/agent-now" })],
    });
    const pulled = [
      now,
      before,
      older,
      agentNow,
      agentBefore,
      image("agent-older", { ...theirs, lastUsedAt: hoursAgo(10) }),
    ];
    expect(removable({ pulled, desired })).toEqual(["agent-older", "older"]);
  });

  test("exclude a wanted image that nothing runs yet, under any of its names", () => {
    const alias = { ...now, reference: "example/alias" };
    expect(removable({ pulled: [alias, now, before] })).toEqual([]);
  });

  test("exclude an image that someone else's container uses (kubernetes#123631)", () => {
    const pulled = [now, before, older, oldest];
    expect(removable({ pulled, inUse: new Set([oldest.id]) })).toEqual(["older"]);
  });

  test("exclude a recently pulled image and a recently used one", () => {
    const young = image("young", { pulledAt: hoursAgo(0.5), lastUsedAt: 0, workloadId: "wkl_gone" });
    const used = image("used", { lastUsedAt: hoursAgo(0.9), workloadId: "wkl_gone" });
    const gone = image("gone", { workloadId: "wkl_gone" });
    expect(removable({ pulled: [young, used, gone] })).toEqual(["gone"]);
  });

  test("include an image of a workload that is gone, since there is nothing to roll back", () => {
    expect(removable({ pulled: [before], desired: aDesiredState({ workloads: [] }) })).toEqual(["before"]);
  });

  test("are none without a desired state", () => {
    expect(removable({ pulled: [before, older], desired: null })).toEqual([]);
  });
});

test("images that are running, wanted, recent, unknown or needed for a rollback are never removed", () => {
  const times = fc.integer({ min: 0, max: 20 }).map(hoursAgo);
  const images = fc.uniqueArray(
    fc.record({
      id: fc.constantFrom("a", "b", "c", "d", "e"),
      reference: fc.constantFrom("r1", "r2", "r3", "r4"),
      workloadId: fc.constantFrom("x", "y", "gone"),
      pulledAt: times,
      lastUsedAt: times,
    }),
    { selector: ({ id, reference }) => `${id} ${reference}` },
  );
  const wanted = fc.uniqueArray(
    fc.record({ workloadId: fc.constantFrom("x", "y"), image: fc.constantFrom("r1", "r2", "r3") }),
    {
      selector: ({ workloadId }) => workloadId,
    },
  );
  const property = fc.property(
    images,
    wanted,
    fc.uniqueArray(fc.constantFrom("a", "b", "z")),
    (pulled, workloads, used) => {
      const desired = aDesiredState({ workloads: workloads.map((workload) => aSpec(workload)) });
      const inUse = new Set<string>(used);
      const gone = removableImages({ pulled, inUse, desired, now: NOW });
      const goneIds = new Set(gone.map(({ id }) => id));
      for (const candidate of gone) {
        expect(pulled).toContain(candidate);
        expect(inUse.has(candidate.id)).toBe(false);
        expect(workloads.map((workload) => workload.image)).not.toContain(candidate.reference);
        expect(NOW - Math.max(candidate.pulledAt, candidate.lastUsedAt)).toBeGreaterThanOrEqual(MIN_AGE_MS);
      }
      for (const { workloadId } of workloads) {
        const known = pulled.filter((candidate) => candidate.workloadId === workloadId);
        if (known.length > 0) expect(known.every(({ id }) => goneIds.has(id))).toBe(false);
      }
      const order = gone.map(({ pulledAt, lastUsedAt }) => Math.max(pulledAt, lastUsedAt));
      expect(order).toEqual(order.toSorted((a, b) => a - b));
    },
  );
  fc.assert(property, { numRuns: 500, seed: 3 });
});
