import { Agent } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import {
  CALLER_NAMES,
  type Caller,
  DAEMON_ROUTES,
  INFERENCE_ROUTES,
  outcomeFor,
  PLATFORM_ROUTES,
  RELAY_ROUTES,
  type RouteAccess,
} from "../../packages/control-plane/src/access/auth/route-access.ts";
import { daemonUpgrades } from "../../packages/control-plane/src/fleet/link/daemon-upgrades.ts";
import { NodeTurns } from "../../packages/control-plane/src/http/limits/node-turns.ts";
import { UpgradeAdmission } from "../../packages/control-plane/src/http/upgrades/upgrade-admission.ts";
import { BoundCounters } from "../../packages/control-plane/src/telemetry/bounds/bound-counters.ts";
import { systemClock } from "../../packages/protocol/src/values/clock.ts";
import { type RawAnswer, rawCall } from "../support/raw-http.ts";
import { type Call, type MakeCall, wireOf } from "./call.ts";
import { INFERENCE_CALLS, PLATFORM_CALLS, RELAY_CALLS } from "./calls.ts";
import { tryAsDaemon } from "./daemon-calls.ts";
import { recordRoutes, type ServedRoutes } from "./routes.ts";
import { World } from "./world.ts";

/**
 * Every route of both hosts, called as every kind of caller: what comes back is what the table of
 * `packages/control-plane/src/access/auth/route-access.ts` says, and no route is without a line there.
 *
 * `yes` means a good answer: 2xx, a redirect to elsewhere than the sign-in, an accepted upgrade, or one of the few texts that a call
 * names because only who was let in gets them. A call that was let in and then found wrong (400, 409) is no `yes`.
 */

let world: World;
let routes: ServedRoutes;
const agent = new Agent({ keepAlive: true, maxSockets: 4 });

beforeAll(async () => {
  const recorded = await recordRoutes(() => World.start());
  world = recorded.started;
  routes = recorded.routes;
});
afterAll(async () => {
  agent.destroy();
  await world.close();
});

const errorSchema = z.object({ error: z.object({ code: z.string() }) });

function codeOf({ text }: RawAnswer): string {
  try {
    return errorSchema.parse(JSON.parse(text)).error.code;
  } catch {
    return "";
  }
}

/** Anything that is no outcome of the table is told as status and code, and so differs from it. */
function outcomeOf(answer: RawAnswer, call: Call): string {
  const { status } = answer;
  if (status === 401 || status === 403 || status === 404) return String(status);
  if (status >= 300 && status < 400) return String(answer.headers["location"]).includes("/sign-in") ? "303" : "yes";
  if (status < 300 || call.letIn?.some((text) => answer.text.includes(text))) return "yes";
  return `${status} ${codeOf(answer)}`;
}

async function callHost(
  url: string,
  route: string,
  calls: Readonly<Record<string, MakeCall>>,
): Promise<Map<Caller, string>> {
  const make = calls[route];
  if (!make) throw new Error(`calls.ts does not know how to call ${route}`);
  const [method = ""] = route.split(" ");
  const cells = new Map<Caller, string>();
  for (const caller of CALLER_NAMES) {
    const call = await make(world, caller);
    const answer = await rawCall(agent, { url, method, path: call.path, ...wireOf(world, caller, call) });
    cells.set(caller, outcomeOf(answer, call));
  }
  return cells;
}

/** One line for each cell that is not as the table says. */
function differences(route: string, access: RouteAccess, cells: ReadonlyMap<Caller, string>): string[] {
  return CALLER_NAMES.flatMap((caller) => {
    const expected = String(outcomeFor(access, caller));
    const found = cells.get(caller);
    return found === expected ? [] : [`${route} as ${caller}: the table says ${expected}, the host ${found}`];
  });
}

describe("the access table", () => {
  test("has a row for every route of the platform host and no others", () => {
    expect(Object.keys(PLATFORM_ROUTES).toSorted()).toEqual(routes.platform.toSorted());
  });

  test("has a row for every route in the API document", async () => {
    const answer = await rawCall(agent, {
      url: world.server.platformUrl,
      method: "GET",
      path: "/openapi.json",
      headers: {},
    });
    const { paths } = z
      .object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })
      .parse(JSON.parse(answer.text));
    const methods = ["get", "post", "put", "patch", "delete"];
    const documented = Object.entries(paths).flatMap(([path, item]) =>
      methods
        .filter((method) => method in item)
        .map((method) => `${method.toUpperCase()} ${"servers" in item ? "/v1" : ""}${path}`),
    );
    expect(documented.filter((route) => !(route in PLATFORM_ROUTES || route in INFERENCE_ROUTES))).toEqual([]);
    expect(documented.length).toBeGreaterThan(20);
  });

  test("has a row for every route of the inference host and no others", () => {
    expect(Object.keys(INFERENCE_ROUTES).toSorted()).toEqual(routes.inference.toSorted());
  });

  test("has a row for every upgrade and procedure of the daemon link and no others", () => {
    const named = Object.keys(DAEMON_ROUTES);
    const procedures = named.filter((route) => route.startsWith("LINK "));
    expect(procedures.toSorted()).toEqual(routes.link.map((name) => `LINK ${name}`).toSorted());
    const upgrades = named.filter((route) => route.startsWith("UPGRADE ")).map((route) => route.slice(8));
    const free = new UpgradeAdmission(1, systemClock);
    const turns = new NodeTurns({ burst: 1, everyMs: 1, clock: systemClock });
    const served = daemonUpgrades({
      links: { accept: () => undefined },
      tunnels: { attach: () => undefined },
      admissions: { links: free, tunnels: free },
      turns: { links: turns, tunnels: turns },
      bounds: new BoundCounters(),
    });
    expect(served).toHaveLength(upgrades.length);
    for (const path of upgrades) expect(served.filter((route) => route.match(path))).toHaveLength(1);
  });

  test("has a test call for every row", () => {
    expect(Object.keys(PLATFORM_CALLS).toSorted()).toEqual(Object.keys(PLATFORM_ROUTES).toSorted());
    expect(Object.keys(INFERENCE_CALLS).toSorted()).toEqual(Object.keys(INFERENCE_ROUTES).toSorted());
  });
});

describe("the platform host responds to every kind of caller as the access table says", () => {
  test.each(Object.entries(PLATFORM_ROUTES))("%s", async (route, access) => {
    const cells = await callHost(world.server.platformUrl, route, PLATFORM_CALLS);
    expect(differences(route, access, cells)).toEqual([]);
  });
});

describe("the inference host responds to every kind of caller as the access table says", () => {
  test.each(Object.entries(INFERENCE_ROUTES))("%s", async (route, access) => {
    const cells = await callHost(world.server.inferenceUrl, route, INFERENCE_CALLS);
    expect(differences(route, access, cells)).toEqual([]);
  });
});

describe("the relay responds to every kind of caller as the access table says", () => {
  test.each(Object.entries(RELAY_ROUTES))("%s", async (route, access) => {
    const cells = await callHost(world.server.platformUrl, route, RELAY_CALLS);
    expect(differences(route, access, cells)).toEqual([]);
  });
});

describe("daemon connections are opened and called as the access table says", () => {
  test.each(Object.entries(DAEMON_ROUTES))("%s", async (route, access) => {
    const cells = new Map<Caller, string>();
    const { platformUrl } = world.server;
    for (const caller of CALLER_NAMES) {
      const { headers } = wireOf(world, caller, { path: "" });
      cells.set(caller, await tryAsDaemon(route, { platformUrl, nodeId: world.node.id, headers }));
    }
    expect(differences(route, access, cells)).toEqual([]);
  });
});
