import { Agent, type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { LINK_PATH, TUNNEL_PATH, TUNNEL_UPGRADE } from "@fairlead/protocol/daemon-link";
import Sqlite from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { STORES } from "../../packages/control-plane/src/testing.fixture.ts";
import { FaultyLink } from "../support/faulty-link.ts";
import { type RawAnswer, rawCall } from "../support/raw-http.ts";
import { startTwoTenants, type TwoTenants } from "../support/two-tenants.ts";
import { waitFor } from "../support/wait-for.ts";

/**
 * A store that is locked or away is our fault and passes: 503 with `retry-after`. A 401 would make people sign in again, daemons
 * stop for good, and programs throw their keys away.
 */

interface Call {
  readonly what: string;
  readonly send: (tenants: TwoTenants) => Promise<RawAnswer>;
}

const agent = new Agent({ keepAlive: false });

const asJson = (token: string): Record<string, string> => ({
  authorization: `Bearer ${token}`,
  "content-type": "application/json",
});

function platform(
  { server }: TwoTenants,
  call: { readonly method: string; readonly path: string; readonly token?: string; readonly body?: unknown },
): Promise<RawAnswer> {
  const { method, path, token = "none", body } = call;
  const text = body === undefined ? undefined : JSON.stringify(body);
  return rawCall(agent, { url: server.platformUrl, method, path, headers: asJson(token), body: text });
}

function upgrade({ server, ann }: TwoTenants, path: string, protocol: string): Promise<RawAnswer> {
  const headers = {
    ...asJson(ann.identityToken),
    connection: "upgrade",
    upgrade: protocol,
    "sec-websocket-key": Buffer.alloc(16).toString("base64"),
    "sec-websocket-version": "13",
  };
  return new Promise((resolve, reject) => {
    const sent = request(`${server.platformUrl}${path}`, { headers, agent });
    const answered = (response: IncomingMessage, text: string): void =>
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
    sent.on("upgrade", (response, socket) => {
      socket.destroy();
      answered(response, "");
    });
    sent.on("response", (response) => {
      void response.toArray().then((pieces: Buffer[]) => answered(response, Buffer.concat(pieces).toString()), reject);
    });
    sent.on("error", reject);
    sent.end();
  });
}

function assertionOf({ ann }: TwoTenants): string {
  const now = Math.floor(Date.now() / 1000);
  const claims = { sub: ann.nodeId, iss: ann.nodeId, aud: ann.installationId, iat: now, exp: now + 60 };
  return ann.daemonKey.sign({ ...claims, jti: crypto.randomUUID() });
}

/** Every kind of credential, on a call that has to ask the store whether it is good. Each answers 2xx or 101 where the store is there. */
const CHECKED: readonly Call[] = [
  {
    what: "a session token",
    send: (tenants) => platform(tenants, { method: "GET", path: "/v1/projects", token: tenants.ann.token }),
  },
  {
    what: "a session token on a route of one project",
    send: (tenants) =>
      platform(tenants, {
        method: "GET",
        path: `/v1/projects/${tenants.ann.projectId}`,
        token: tenants.ann.token,
      }),
  },
  {
    what: "a node identity token",
    send: (tenants) =>
      platform(tenants, { method: "GET", path: `/v1/nodes/${tenants.ann.nodeId}`, token: tenants.ann.identityToken }),
  },
  {
    what: "a node's assertion",
    send: (tenants) =>
      platform(tenants, {
        method: "POST",
        path: `/v1/nodes/${tenants.ann.nodeId}/identity-tokens`,
        body: { assertion: assertionOf(tenants) },
      }),
  },
  {
    what: "a node identity token that opens the daemon link",
    send: (tenants) => upgrade(tenants, LINK_PATH(tenants.ann.nodeId), "websocket"),
  },
  {
    what: "a node identity token that opens the tunnel",
    send: (tenants) => upgrade(tenants, TUNNEL_PATH(tenants.ann.nodeId), TUNNEL_UPGRADE),
  },
  {
    what: "a project key",
    send: ({ server, ann }) =>
      rawCall(agent, { url: server.inferenceUrl, method: "GET", path: "/v1/models", headers: asJson(ann.keyValue) }),
  },
];

/** Calls that write. */
const WRITTEN: readonly Call[] = [
  {
    what: "a session token",
    send: (tenants) =>
      platform(tenants, { method: "POST", path: "/v1/projects", token: tenants.ann.token, body: { name: "Away" } }),
  },
  {
    what: "a bootstrap token",
    send: (tenants) => {
      const { nodeId, bootstrapToken, daemonKey } = tenants.ann;
      const body = daemonKey.enrollRequest(nodeId, bootstrapToken);
      return platform(tenants, { method: "POST", path: `/v1/nodes/${nodeId}/enroll`, token: bootstrapToken, body });
    },
  },
];

/** Credentials that are wrong by their form or signature alone. */
const WRONG: readonly Call[] = [
  { what: "no token", send: (tenants) => platform(tenants, { method: "GET", path: "/v1/projects", token: "" }) },
  {
    what: "a token that somebody else signed",
    send: (tenants) =>
      platform(tenants, { method: "GET", path: "/v1/projects", token: `${tenants.ann.token.slice(0, -8)}AAAAAAAA` }),
  },
  {
    what: "a mistyped project key",
    send: ({ server, ann }) =>
      rawCall(agent, {
        url: server.inferenceUrl,
        method: "GET",
        path: "/v1/models",
        headers: asJson(`${ann.keyValue}x`),
      }),
  },
];

function expectAway({ status, headers, text }: RawAnswer): void {
  expect({ status, text }).toMatchObject({ status: 503, text: expect.stringContaining('"code":"unavailable"') });
  expect(Number(headers["retry-after"])).toBeGreaterThan(0);
  expect(headers).not.toHaveProperty("x-should-retry");
  expect(headers).not.toHaveProperty("www-authenticate");
}

const isGood = ({ status }: RawAnswer): boolean => status === 101 || (status >= 200 && status < 300);

describe.each(STORES.filter(({ name }) => name === "PostgreSQL"))("while $name is away", (postgres) => {
  const network = new FaultyLink();
  let tenants: TwoTenants;
  let port: number;

  beforeAll(async () => {
    tenants = await startTwoTenants({
      ...postgres,
      openShared: async (dir) => {
        const shared = await postgres.openShared(dir);
        if (!("url" in shared.location)) throw new Error("PostgreSQL has a URL");
        const url = new URL(shared.location.url);
        await network.start(Number(url.port || "5432"));
        url.port = String(network.port);
        return { ...shared, location: { url: url.href } };
      },
    });
    port = network.port;
    await network.stop();
  });
  afterAll(async () => {
    await tenants.close();
    await network.stop();
  });

  test.each([...CHECKED, ...WRITTEN])("$what is answered 503 with retry-after", async ({ send }) => {
    expectAway(await send(tenants));
  });

  test.each(WRONG)("$what is still 401", async ({ send }) => {
    expect((await send(tenants)).status).toBe(401);
  });

  test("the server says that it is not ready, and goes on by itself once the store is back", async () => {
    const ready = (): Promise<RawAnswer> => platform(tenants, { method: "GET", path: "/readyz" });
    expect((await ready()).status).toBe(503);
    await network.restart(port);
    await waitFor("readiness", 30_000, async () => (await ready()).status === 200);
    for (const { what, send } of [...CHECKED, ...WRITTEN]) {
      const answer = await send(tenants);
      expect({ what, good: isGood(answer), text: answer.text }).toMatchObject({ what, good: true });
    }
  });
});

describe("while another program holds SQLite's lock for longer than we wait", () => {
  let tenants: TwoTenants;
  let other: Sqlite.Database;

  beforeAll(async () => {
    const sqlite = STORES.find(({ name }) => name === "SQLite");
    if (!sqlite) throw new Error("there is always SQLite");
    tenants = await startTwoTenants(sqlite);
    other = new Sqlite(join(tenants.dataDir, "fairlead.db"));
    other.exec("begin immediate");
  });
  afterAll(async () => {
    other.close();
    await tenants.close();
  });

  test.each(WRITTEN)("a call that writes, with $what, is answered 503 with retry-after", async ({ send }) => {
    expectAway(await send(tenants));
  });

  test.each(CHECKED)("$what is judged as ever by calls that only read", async ({ send }) => {
    const answer = await send(tenants);
    expect({ good: isGood(answer), text: answer.text }).toMatchObject({ good: true });
  });

  test("all goes on once the lock is gone", async () => {
    other.exec("rollback");
    for (const { send } of WRITTEN) expect(isGood(await send(tenants))).toBe(true);
  });
});
