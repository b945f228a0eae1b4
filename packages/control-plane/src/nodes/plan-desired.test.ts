import { engineConfigSchema } from "@fairlead/protocol/engine-config";
import { workloadSpecSchema } from "@fairlead/protocol/workload";
import { describe, expect, it } from "vitest";
import { planWorkloads } from "./plan-desired.ts";

const NODE = "nod_1";

describe("planning a node's workloads", () => {
  it("asks for nothing where no engine is configured", () => {
    expect(planWorkloads(NODE, null)).toEqual([]);
  });

  it("fills in from the preset what the config leaves out, and only that", () => {
    const [spec] = planWorkloads(NODE, {
      preset: "fairlead-demo",
      args: ["--alias", "mine"],
      health: { intervalSeconds: 1 },
      resources: { cpus: 1 },
    });
    expect(spec).toMatchObject({
      image: "fairlead/demo-engine:1",
      args: ["--alias", "mine"],
      port: 8080,
      health: { path: "/health", intervalSeconds: 1, timeoutSeconds: 3 },
      resources: { cpus: 1 },
    });
    expect(workloadSpecSchema.parse(spec)).toEqual(spec);
  });

  it("gives the same hash for the same config in another order, and another for another config", () => {
    const hash = (config: unknown): string | undefined =>
      planWorkloads(NODE, engineConfigSchema.parse(config))[0]?.specHash;
    const first = hash({ image: "a:1", env: { A: "1", B: "2" }, port: 80 });
    expect(hash({ port: 80, env: { B: "2", A: "1" }, image: "a:1" })).toBe(first);
    expect(hash({ port: 81, env: { B: "2", A: "1" }, image: "a:1" })).not.toBe(first);
  });

  it("refuses a config with neither an image nor a preset that brings one", () => {
    expect(engineConfigSchema.safeParse({ port: 80 }).error?.issues[0]?.path).toEqual(["image"]);
    expect(engineConfigSchema.safeParse({ preset: "custom" }).success).toBe(false);
  });
});
