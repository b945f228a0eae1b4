import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import { TUNNEL_UPGRADE } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import { countingIds } from "@fairlead/protocol/testing/test-clock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { NodeCredentials, VerifiedNode } from "../../access/auth/authenticate.ts";
import type { NodePrincipal } from "../../access/auth/principal.ts";
import { createLog } from "../../installation/process/log.ts";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { RateLimit } from "../limits/rate-limit.ts";
import { listen } from "../listening/listen.ts";
import {
  type AcceptedUpgrade,
  isOurUpgrade,
  type NodeUpgradeRoute,
  type OpenUpgradeRoute,
  UpgradeDispatcher,
} from "./upgrade-dispatcher.ts";
import { UpgradeGuard } from "./upgrade-guard.ts";

const FAILURES = 3;
const node: NodePrincipal = { kind: "node", nodeId: "nod_1", projectId: "prj_1" };

describe("the upgrade dispatcher", () => {
  let server: Server;
  let dispatcher: UpgradeDispatcher;
  let accepted: AcceptedUpgrade[];
  let authenticated: Promise<void>;

  /** What was done for the callers, in order. */
  let steps: string[];

  const credentials: NodeCredentials = {
    verify: async (header) => {
      await authenticated;
      steps.push("verified");
      if (header !== "Bearer good") throw new DomainError("invalid_credential", "No.");
      const claims = { audience: "node", nodeId: "nod_1", projectId: "prj_1", keyThumbprint: "" } as const;
      return { principal: node, claims } satisfies VerifiedNode;
    },
    confirm: async () => {
      steps.push("store asked");
      return node;
    },
  };
  const route = (protocol: NodeUpgradeRoute["protocol"], path: string): NodeUpgradeRoute => ({
    for: "node",
    protocol,
    admit: () => void steps.push("admitted"),
    match: (asked) => (asked === path ? { id: "1" } : null),
    handle: (upgrade) => {
      if (upgrade.request.headers["x-refuse"]) throw new DomainError("not_found", "Not yours.");
      if (upgrade.request.headers["x-break"]) throw new Error("broken");
      accepted.push(upgrade);
      upgrade.socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    },
  });

  const relay: OpenUpgradeRoute = {
    for: "anybody",
    protocol: "websocket",
    match: (asked) => (asked === "/relay" ? {} : null),
    handle: async () => {
      throw new DomainError("invalid_credential", "No.");
    },
  };

  beforeEach(async () => {
    accepted = [];
    steps = [];
    authenticated = Promise.resolve();
    server = createServer({ shouldUpgradeCallback: isOurUpgrade }, (_request, response) => response.end("plain"));
    dispatcher = new UpgradeDispatcher({
      routes: [route("websocket", "/link"), route(TUNNEL_UPGRADE, "/tunnel"), relay],
      credentials,
      guard: new UpgradeGuard({
        failures: new RateLimit({ what: "failed upgrades", limit: FAILURES, seconds: 60 }),
        clientOf: () => "127.0.0.1",
        bounds: new BoundCounters(),
      }),
      ids: countingIds(),
      log: createLog({ level: "silent" }),
    });
    dispatcher.attach(server);
    await listen(server, { host: "127.0.0.1", port: 0, setting: "port" });
  });
  afterEach(async () => {
    dispatcher.close();
    server.close();
    await once(server, "close");
  });

  interface Answer {
    readonly status: number;
    readonly headers: IncomingMessage["headers"];
    readonly body: string;
  }

  async function ask(path: string, headers: Record<string, string>): Promise<Answer> {
    const address = server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    const call = request({
      host: "127.0.0.1",
      port,
      path,
      agent: false,
      headers: { connection: "Upgrade", ...headers },
    });
    call.end();
    return new Promise((resolve, reject) => {
      call.on("error", reject);
      call.on("upgrade", (response, socket) => {
        socket.on("error", () => {});
        resolve({ status: 101, headers: response.headers, body: "" });
      });
      call.on("response", (response) => {
        response.toArray().then(
          (pieces: Buffer[]) =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              body: Buffer.concat(pieces).toString(),
            }),
          reject,
        );
      });
    });
  }

  const good = { authorization: "Bearer good" };

  test("passes an authenticated upgrade to the route of its path and protocol", async () => {
    expect((await ask("/link?x=1", { ...good, upgrade: "WebSocket" })).status).toBe(101);
    expect((await ask("/tunnel", { ...good, upgrade: TUNNEL_UPGRADE })).status).toBe(101);
    expect(accepted.map(({ params, principal }) => [params, principal])).toEqual([
      [{ id: "1" }, node],
      [{ id: "1" }, node],
    ]);
  });

  test("rejects an invalid credential with a status and the error format, before any handshake", async () => {
    const answer = await ask("/link", { upgrade: "websocket", authorization: "Bearer bad" });
    expect(answer.status).toBe(401);
    expect(answer.headers["www-authenticate"]).toBe("Bearer");
    expect(JSON.parse(answer.body)).toMatchObject({
      error: { code: "invalid_credential", requestId: answer.headers["x-request-id"] },
    });
    expect(accepted).toEqual([]);
  });

  test("charges the shared limit only for verified callers, before the store is asked", async () => {
    for (const authorization of ["", "Bearer bad"]) await ask("/link", { upgrade: "websocket", authorization });
    expect(steps).toEqual(["verified", "verified"]);
    await ask("/link", { ...good, upgrade: "websocket" });
    expect(steps.slice(2)).toEqual(["verified", "admitted", "store asked"]);
  });

  test("counts failures on all paths by address, and still admits a daemon with a valid credential there", async () => {
    const statuses: number[] = [];
    for (const path of ["/link", "/relay", "/link", "/link", "/relay"]) {
      statuses.push((await ask(path, { upgrade: "websocket" })).status);
    }
    expect(statuses).toEqual([401, 401, 401, 429, 429]);
    expect((await ask("/link", { ...good, upgrade: "websocket" })).status).toBe(101);
  });

  test("returns 404 for unknown paths, without authenticating the caller", async () => {
    expect((await ask("/other", { upgrade: "websocket" })).status).toBe(404);
  });

  test("returns 426 with the protocol to use when only the protocol is wrong", async () => {
    const answer = await ask("/tunnel", { ...good, upgrade: "websocket" });
    expect(answer.status).toBe(426);
    expect(answer.headers.upgrade).toBe(TUNNEL_UPGRADE);
  });

  test("lets a route refuse before it responds, and returns 500 for the route's own errors", async () => {
    expect((await ask("/link", { ...good, upgrade: "websocket", "x-refuse": "1" })).status).toBe(404);
    const broken = await ask("/link", { ...good, upgrade: "websocket", "x-break": "1" });
    expect(broken.status).toBe(500);
    expect(broken.body).not.toContain("broken");
  });

  test("leaves other protocols to the plain host", async () => {
    const answer = await ask("/link", { ...good, upgrade: "h2c" });
    expect([answer.status, answer.body]).toEqual([200, "plain"]);
  });

  test("returns 503 once it is stopping", async () => {
    dispatcher.stop();
    const answer = await ask("/link", { ...good, upgrade: "websocket" });
    expect(answer.status).toBe(503);
    expect(answer.headers["retry-after"]).toBe("1");
  });

  test("survives a caller that disconnects during authentication", async () => {
    const check = Promise.withResolvers<void>();
    authenticated = check.promise;
    const address = server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    const call = request({
      host: "127.0.0.1",
      port,
      path: "/link",
      agent: false,
      headers: { ...good, connection: "Upgrade", upgrade: "websocket" },
    });
    call.on("error", () => {});
    call.end();
    await once(server, "upgrade");
    const gone = new Promise((resolve) => call.once("close", resolve));
    call.destroy();
    await gone;
    authenticated = Promise.resolve();
    check.resolve();
    expect((await ask("/link", { ...good, upgrade: "websocket" })).status).toBe(101);
  });

  test("closes open sockets during shutdown, so that the server can close", async () => {
    await ask("/link", { ...good, upgrade: "websocket" });
    const closed = once(accepted[0]?.socket ?? server, "close");
    dispatcher.close();
    await closed;
  });
});
