import type { EngineTarget } from "@fairlead/inference/ports/ports";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import type { Id } from "@fairlead/protocol/values/ids";
import type { TunnelTransport } from "@fairlead/wire/tunnel-transport";
import { expect, test } from "vitest";
import { ModelDiscovery } from "../providers/model-discovery.ts";
import { engine } from "../providers/provider.fixture.ts";
import type { Tunnels } from "./model-candidates.ts";
import { NO_MODELS, NOBODY_RETURNS } from "./model-catalog.fixture.ts";
import { ProjectModelCatalog } from "./model-catalog.ts";

const PROJECT = "prj_1" as Id<"project">;
const TUNNEL: TunnelTransport = {
  open: () => {
    throw new Error("nothing is sent here");
  },
};

function catalog(engines: readonly EngineTarget[], tunnels: Partial<Tunnels> = {}): ProjectModelCatalog {
  return new ProjectModelCatalog({
    directory: { find: () => NO_MODELS },
    engines: { list: async () => engines },
    tunnels: { ...NOBODY_RETURNS, get: () => null, ...tunnels },
    discovery: new ModelDiscovery({ clock: new TestClock() }),
    defaultModel: null,
    nodeModels: [],
    maxRetryWaitMs: 5000,
  });
}

const refusal = (of: ProjectModelCatalog, model: string): Promise<unknown> =>
  of.resolve(PROJECT, model).then(
    () => null,
    (error: unknown) => error,
  );

test.each([
  [
    "an engine that its node reports as not ready",
    { absence: "The engine of node `box` is starting." },
    {},
    "The engine of node `box` is starting.",
  ],
  [
    "a daemon that was connected",
    {},
    { lostAt: () => Date.UTC(2026, 0, 2, 3, 4, 5) },
    "The daemon of node `box` has not been connected since 2026-01-02T03:04:05.000Z. Its engine may still be running.",
  ],
  [
    "a server that was just restarted",
    {},
    { isReturning: () => true },
    "This server has just restarted, and the daemon of node `box` has not reconnected yet.",
  ],
  ["a daemon that stays away", {}, {}, "The daemon of node `box` is not connected. Its engine may still be running."],
])("an error names the node and the cause: %s", async (...[, target, tunnels, message]) => {
  const error = await refusal(catalog([engine("box", target)], tunnels), "box/tiny");
  expect(error).toMatchObject({ code: "no_running_engine", message, retryAfterSeconds: 5 });
});

test("for many nodes, the first three are named", async () => {
  const engines = ["a", "b", "c", "d", "e"].map((name) => engine(name, { absence: `Node ${name} rests.` }));
  expect(await refusal(catalog(engines), "nodes/tiny")).toMatchObject({
    message:
      "None of the 5 nodes that serve this model can respond. Node a rests. Node b rests. Node c rests. And 2 more.",
  });
});

test("a call waits for returning nodes, no longer than its retries allow, and uses the first one that reconnects", async () => {
  const connected = new Set<string>();
  const asked: unknown[] = [];
  const arrival = async (nodeIds: readonly string[], maxMs: number): Promise<boolean> => {
    asked.push([nodeIds, maxMs]);
    connected.add("nod_rack");
    return true;
  };
  const get = (nodeId: string): TunnelTransport | null => (connected.has(nodeId) ? TUNNEL : null);
  const engines = [engine("box"), engine("rack"), engine("cold", { absence: "Drained." })];
  const { candidates } = await catalog(engines, { get, arrival }).resolve(PROJECT, "nodes/tiny");
  expect(candidates.map(({ key }) => key)).toEqual(["nod_rack"]);
  expect(asked).toEqual([[["nod_box", "nod_rack"], 5000]]);
});

test("a call does not wait if no node can return", async () => {
  const arrival = (): Promise<boolean> => Promise.reject(new Error("waited"));
  expect(await refusal(catalog([engine("cold", { absence: "Drained." })], { arrival }), "cold/tiny")).toMatchObject({
    message: "Drained.",
  });
});

test("listing and looking up models do not wait", async () => {
  const arrival = (): Promise<boolean> => Promise.reject(new Error("waited"));
  const models = catalog([engine("box")], { arrival });
  expect(await models.list(PROJECT)).toEqual([]);
  await expect(models.entry(PROJECT, "box/tiny")).rejects.toMatchObject({ code: "no_running_engine" });
});
