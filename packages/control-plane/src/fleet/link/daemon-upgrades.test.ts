import { DomainError } from "@fairlead/protocol/errors";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { beforeEach, expect, test } from "vitest";
import type { NodePrincipal } from "../../access/auth/principal.ts";
import { NodeTurns } from "../../http/limits/node-turns.ts";
import { UpgradeAdmission } from "../../http/upgrades/upgrade-admission.ts";
import type { NodeUpgradeRoute } from "../../http/upgrades/upgrade-dispatcher.ts";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { daemonUpgrades } from "./daemon-upgrades.ts";

const PER_SECOND = 5;
const BURST = 2;

let bounds: BoundCounters;
let routes: NodeUpgradeRoute[];

beforeEach(() => {
  bounds = new BoundCounters();
  const clock = new TestClock();
  const newTurns = (): NodeTurns => new NodeTurns({ burst: BURST, everyMs: 2000, clock });
  const admissions = {
    links: new UpgradeAdmission(PER_SECOND, clock),
    tunnels: new UpgradeAdmission(PER_SECOND, clock),
  };
  const turns = { links: newTurns(), tunnels: newTurns() };
  const nothing = (): void => undefined;
  const doors = { links: { accept: nothing }, tunnels: { attach: nothing } };
  routes = daemonUpgrades({ ...doors, admissions, turns, bounds });
});

/** @returns "in", or the code of the refusal. */
function ask(route: NodeUpgradeRoute | undefined, nodeId: string, pathOf = nodeId): string {
  const principal: NodePrincipal = { kind: "node", nodeId: nodeId as NodePrincipal["nodeId"], projectId: "prj_1" };
  try {
    route?.admit({ principal, params: { id: pathOf } });
    return "in";
  } catch (error) {
    return error instanceof DomainError ? error.code : "broken";
  }
}

test("a node that reconnects in a tight loop takes no capacity from other nodes, for links and tunnels alike", () => {
  for (const route of routes) {
    const loop = Array.from({ length: 100 }, () => ask(route, "nod_loop"));
    expect(loop.filter((outcome) => outcome === "in")).toHaveLength(BURST);
    expect(new Set(loop.slice(BURST))).toEqual(new Set(["rate_limit_exceeded"]));
    const others = Array.from({ length: PER_SECOND - BURST }, (_, n) => ask(route, `nod_${n}`));
    expect(new Set(others)).toEqual(new Set(["in"]));
  }
  expect(Object.fromEntries(bounds.counts)).toEqual({ links_of_node: 98, tunnels_of_node: 98 });
});

test("a node that is rejected by the fleet's limit does not use up its own", () => {
  const [link] = routes;
  for (let n = 0; n < PER_SECOND; n++) ask(link, `nod_${n}`);
  const refused = Array.from({ length: 3 * BURST }, () => ask(link, "nod_late"));
  expect(new Set(refused)).toEqual(new Set(["overloaded"]));
});

test("a request for another node's path does not count for either node", () => {
  const [link] = routes;
  const wrong = Array.from({ length: 100 }, () => ask(link, "nod_a", "nod_b"));
  expect(new Set(wrong)).toEqual(new Set(["not_found"]));
  expect([ask(link, "nod_a"), ask(link, "nod_b")]).toEqual(["in", "in"]);
});
