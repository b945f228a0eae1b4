import { Agent } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { Caller } from "../../packages/control-plane/src/access/auth/route-access.ts";
import { type OpenedDatabase, openDatabase } from "../../packages/control-plane/src/installation/db/open.ts";
import { STORES } from "../../packages/control-plane/src/testing.fixture.ts";
import { type Call, type MakeCall, wireOf } from "../access-matrix/call.ts";
import { INFERENCE_CALLS, PLATFORM_CALLS } from "../access-matrix/calls.ts";
import { tryAsDaemon } from "../access-matrix/daemon-calls.ts";
import { World } from "../access-matrix/world.ts";
import { FaultyLink } from "../support/faulty-link.ts";
import { type RawAnswer, rawCall } from "../support/raw-http.ts";
import { waitFor } from "../support/wait-for.ts";

/**
 * A store that is locked or away is our fault and passes: 503 with `retry-after`. A 401 would make people sign in again, daemons
 * stop for good, and programs throw their keys away.
 */

interface Probe {
  readonly what: string;
  readonly caller: Caller;
  readonly route: string;
}

/** Every kind of credential, on a call that has to ask the store whether it is good, and writes nothing. */
const READING: readonly Probe[] = [
  { what: "a session token", caller: "owner", route: "GET /v1/projects" },
  { what: "a session token in a project", caller: "owner", route: "GET /v1/projects/{id}" },
  { what: "a platform administrator's token", caller: "platformAdmin", route: "GET /v1/audit" },
  { what: "a sign-in cookie", caller: "browser", route: "GET /account" },
  { what: "a one-time link", caller: "nobody", route: "GET /reset/{token}" },
  { what: "a node identity token", caller: "node", route: "GET /v1/nodes/{id}" },
  { what: "a node's assertion", caller: "node", route: "POST /v1/nodes/{id}/identity-tokens" },
  { what: "a project key", caller: "key", route: "GET /v1/models" },
  { what: "a worker-plane token", caller: "worker", route: "GET /v1/models" },
];

const WRITING: readonly Probe[] = [
  { what: "a session token", caller: "owner", route: "POST /v1/projects" },
  { what: "a bootstrap token", caller: "bootstrap", route: "POST /v1/nodes/{id}/enroll" },
  { what: "a password", caller: "nobody", route: "POST /sign-in" },
  { what: "a one-time link", caller: "nobody", route: "POST /reset/{token}" },
  { what: "a device code", caller: "nobody", route: "POST /v1/oauth/token" },
  { what: "a refresh token", caller: "nobody", route: "refresh" },
];

const UPGRADES = ["UPGRADE /v1/nodes/{id}/link", "UPGRADE /v1/nodes/{id}/tunnel"];

const agent = new Agent({ keepAlive: false });
const tokenAnswer = z.object({ refresh_token: z.string() });

/** A refresh token that has not been used yet. */
const refresh: MakeCall = async (world, caller) => {
  const exchange = await PLATFORM_CALLS["POST /v1/oauth/token"]?.(world, caller);
  if (!exchange) throw new Error("calls.ts does not know how to get a token");
  const answer = await send(world, { route: "POST /v1/oauth/token", caller }, exchange);
  const { refresh_token } = tokenAnswer.parse(JSON.parse(answer.text));
  return { ...exchange, form: { grant_type: "refresh_token", refresh_token, client_id: "fairlead-cli" } };
};

async function send(world: World, { route, caller }: Omit<Probe, "what">, call: Call): Promise<RawAnswer> {
  const { platformUrl, inferenceUrl } = world.server;
  const url = route in INFERENCE_CALLS && !(route in PLATFORM_CALLS) ? inferenceUrl : platformUrl;
  const method = route === "refresh" ? "POST" : (route.split(" ", 1)[0] ?? "");
  return rawCall(agent, { url, method, path: call.path, ...wireOf(world, caller, call) });
}

/** All calls are made ready while the store is there, with links, codes and forms of their own. */
class Probes {
  readonly world: World;
  readonly #calls = new Map<Probe, Call>();

  constructor(world: World) {
    this.world = world;
  }

  async prepare(): Promise<void> {
    for (const probe of [...READING, ...WRITING]) {
      const { route, caller } = probe;
      const make = route === "refresh" ? refresh : (PLATFORM_CALLS[route] ?? INFERENCE_CALLS[route]);
      if (!make) throw new Error(`calls.ts does not know how to call ${route}`);
      this.#calls.set(probe, await make(this.world, caller));
    }
  }

  async send(probe: Probe): Promise<RawAnswer> {
    const call = this.#calls.get(probe);
    if (!call) throw new Error("prepare first");
    return send(this.world, probe, call);
  }

  async upgrade(route: string): Promise<string> {
    const { headers } = wireOf(this.world, "node", { path: "" });
    const { platformUrl } = this.world.server;
    return tryAsDaemon(route, { platformUrl, nodeId: this.world.node.id, headers });
  }
}

function expectAway({ status, headers, text }: RawAnswer): void {
  expect({ status, text }).toMatchObject({ status: 503 });
  expect(Number(headers["retry-after"])).toBeGreaterThan(0);
  expect(headers).not.toHaveProperty("x-should-retry");
  expect(headers).not.toHaveProperty("www-authenticate");
}

/** A page after a form, too. */
const isGood = ({ status }: RawAnswer): boolean => status === 200 || status === 303;

describe.each(STORES.filter(({ name }) => name === "PostgreSQL"))("while $name is unavailable", (postgres) => {
  const network = new FaultyLink();
  let probes: Probes;
  let port: number;
  let dropStore: () => Promise<void>;

  beforeAll(async () => {
    const shared = await postgres.openShared("");
    if (!("url" in shared.location)) throw new Error("PostgreSQL has a URL");
    dropStore = () => shared.close();
    const url = new URL(shared.location.url);
    await network.start(Number(url.port || "5432"));
    port = network.port;
    url.port = String(port);
    probes = new Probes(await World.start(url.href));
    await probes.prepare();
    await network.stop();
  });
  afterAll(async () => {
    await probes.world.close();
    await network.stop();
    await dropStore();
  });

  test.each([...READING, ...WRITING])("$what ($route) returns 503 with retry-after", async (probe) => {
    expectAway(await probes.send(probe));
  });

  test.each(UPGRADES)("a node identity token (%s) returns 503 once it is no longer cached", async (route) => {
    await expect.poll(() => probes.upgrade(route), { timeout: 10_000 }).toBe("503");
  });

  test.each([
    ["no token", {}],
    ["a malformed token", { authorization: "Bearer nonsense" }],
    ["a token that someone else signed", { authorization: "Bearer eyJhbGciOiJFZERTQSJ9.e30.AAAA" }],
  ])("%s still returns 401, because that requires no lookup", async (_what, headers) => {
    for (const [url, path] of [
      [probes.world.server.platformUrl, "/v1/projects"],
      [probes.world.server.inferenceUrl, "/v1/models"],
    ] as const) {
      expect((await rawCall(agent, { url, method: "GET", path, headers })).status).toBe(401);
    }
  });

  test("the server is not ready, then recovers with the store, and no credential is used up by a failed call", async () => {
    const ready = async (): Promise<number> => (await fetch(`${probes.world.server.platformUrl}/readyz`)).status;
    expect(await ready()).toBe(503);
    await network.restart(port);
    await waitFor("readiness", 30_000, async () => (await ready()) === 200);
    for (const probe of [...READING, ...WRITING]) {
      const answer = await probes.send(probe);
      expect({ ...probe, good: isGood(answer), text: answer.text }).toMatchObject({ ...probe, good: true });
    }
    // The tries before have used up the node's turns, which come back one every two seconds.
    for (const route of UPGRADES) {
      await expect.poll(() => probes.upgrade(route), { timeout: 30_000, interval: 1000 }).toBe("yes");
    }
  });
});

describe("while another program holds SQLite's lock for longer than the server waits", () => {
  let probes: Probes;
  let other: OpenedDatabase;
  let release: () => Promise<unknown>;

  beforeAll(async () => {
    probes = new Probes(await World.start());
    await probes.prepare();
    other = openDatabase({ file: join(probes.world.dataDir, "fairlead.db") });
    const held = await other.db.startTransaction().execute();
    release = () => held.rollback().execute();
  });
  afterAll(async () => {
    await other.close();
    await probes.world.close();
  });

  test.each(WRITING)("$what ($route) on a call that writes returns 503 with retry-after", async (probe) => {
    expectAway(await probes.send(probe));
  });

  test.each(READING)("$what ($route) on a call that only reads works as usual", async (probe) => {
    const answer = await probes.send(probe);
    expect({ good: isGood(answer), text: answer.text }).toMatchObject({ good: true });
  });

  test("no credential is used up by a failed call, and everything works once the lock is released", async () => {
    await release();
    for (const probe of WRITING) {
      const answer = await probes.send(probe);
      expect({ ...probe, good: isGood(answer), text: answer.text }).toMatchObject({ ...probe, good: true });
    }
  });
});
