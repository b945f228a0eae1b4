import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { LINK_FLOODED, LINK_TAKEN_OVER, MAX_LINK_CALLS, type WorkerTokenAnswer } from "@fairlead/protocol/daemon-link";
import type { SecretAnswer } from "@fairlead/protocol/secrets";
import type { DesiredState } from "@fairlead/protocol/workload";
import { initTRPC, TRPCError, tracked } from "@trpc/server";
import { applyWSSHandler } from "@trpc/server/adapters/ws";
import { describe, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { z } from "zod";
import type { ControlPlaneDouble } from "../testing/fake-control-plane.ts";
import { silentLog } from "../testing/silent-log.ts";
import { type ControlLinkHarness, controlLinkContract } from "./control-link.contract.ts";
import { LinkFlooded } from "./control-link.ts";
import { createTrpcLink } from "./trpc-link.ts";

interface TrpcControlPlane extends ControlLinkHarness {
  readonly controlPlane: ControlPlaneDouble & {
    authorizations: (string | undefined)[];
    silent: boolean;
    failure: Error;
    readonly mostAsking: number;
    closeFlooded(): void;
  };
  readonly tokensRefused: string[];
  /** Sent by a stopping server to all links. */
  readonly askToReconnect: () => void;
  readonly fallSilent: () => void;
}

/** A small control plane on a real socket, with the real procedure names. */
async function start(callTimeoutMs = 5000): Promise<TrpcControlPlane> {
  const received: ControlPlaneDouble["received"] = {
    hellos: [],
    heartbeats: [],
    observations: [],
    events: [],
    goodbyes: [],
  };
  const answer = { heartbeatSeconds: 10, serverTime: 1_700_000_000_000 };
  const secrets = new Map<string, SecretAnswer>();
  const workerTokens = new Map<string, WorkerTokenAnswer>();
  let state: DesiredState | null = null;
  let refusal: { status: number; retryAfterSeconds: number | null } | null = null;
  let failNext = false;
  const wakers = new Set<() => void>();
  const sockets = new Set<Socket>();

  const t = initTRPC.create({
    errorFormatter: ({ shape, error }) => ({
      ...shape,
      data: { ...shape.data, retryAfterMs: double.retryAfterMs(error) },
    }),
  });
  const call = <T>(list: unknown[], result: T) =>
    t.procedure.input(z.any()).mutation(({ input }) => {
      if (double.silent) return new Promise<T>(() => undefined);
      if (failNext) {
        failNext = false;
        throw double.failure;
      }
      list.push(...(Array.isArray(input) ? input : [input]));
      return result;
    });
  const router = t.router({
    hello: call(received.hellos, { ...answer, protocolVersion: 1 }),
    heartbeat: call(received.heartbeats, answer),
    observe: call(received.observations, {}),
    events: call(received.events, {}),
    goodbye: call(received.goodbyes, {}),
    secret: t.procedure
      .input(z.object({ name: z.string() }))
      .query(({ input }): SecretAnswer => secrets.get(input.name) ?? { state: "missing" }),
    workerToken: t.procedure
      .input(z.object({ workloadId: z.string() }))
      .query(async ({ input }): Promise<WorkerTokenAnswer> => {
        double.asking += 1;
        double.mostAsking = Math.max(double.mostAsking, double.asking);
        await setImmediate();
        double.asking -= 1;
        return workerTokens.get(input.workloadId) ?? { state: "none" };
      }),
    desiredState: t.procedure.input(z.any()).subscription(async function* ({ signal }) {
      double.subscriptions += 1;
      for (let last: DesiredState | null = null; !signal?.aborted; ) {
        if (state !== null && state !== last) {
          last = state;
          yield tracked(`${state.epoch}:${state.generation}`, state);
          continue;
        }
        await new Promise<void>((resolve) => {
          wakers.add(resolve);
          signal?.addEventListener("abort", () => resolve(), { once: true });
        });
      }
    }),
  });

  const double = {
    received,
    secrets,
    workerTokens,
    ...answer,
    subscriptions: 0,
    silent: false,
    /** Concurrent requests for tokens. */
    asking: 0,
    mostAsking: 0,
    /** The error of a failing call. */
    failure: new Error("no"),
    retryAfterMs: (error: Error): number | undefined => (error.message === "too many" ? 1500 : undefined),
    closeFlooded: () => {
      for (const client of wss.clients) client.close(LINK_FLOODED, "too many messages");
    },
    authorizations: [] as (string | undefined)[],
    push: (next: DesiredState) => {
      state = next;
      for (const wake of wakers) wake();
      wakers.clear();
    },
    refuseNext: (status: number, retryAfterSeconds: number | null) => {
      refusal = { status, retryAfterSeconds };
    },
    failNextCall: () => {
      failNext = true;
    },
    drop: () => {
      for (const socket of sockets) socket.destroy();
    },
    takeOver: () => {
      for (const client of wss.clients) client.close(LINK_TAKEN_OVER);
    },
  };

  const wss = new WebSocketServer({ noServer: true });
  const handler = applyWSSHandler({ wss, router });
  const server = createServer();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("upgrade", (request, socket, head) => {
    double.authorizations.push(request.headers.authorization);
    if (refusal === null) {
      wss.handleUpgrade(request, socket, head, (ws) => wss.emit("connection", ws, request));
      return;
    }
    const wait = refusal.retryAfterSeconds === null ? "" : `retry-after: ${refusal.retryAfterSeconds}\r\n`;
    socket.end(`HTTP/1.1 ${refusal.status} No\r\n${wait}content-length: 0\r\nconnection: close\r\n\r\n`);
    refusal = null;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const tokensRefused: string[] = [];
  const link = createTrpcLink({
    platformUrl: `http://127.0.0.1:${port}`,
    nodeId: "nod_1",
    token: async () => "jwt",
    onTokenRefused: (token) => tokensRefused.push(token),
    log: silentLog,
    callTimeoutMs,
    keepAlive: { intervalMs: 100, pongTimeoutMs: 100 },
  });
  const close = async (): Promise<void> => {
    double.drop();
    wss.close();
    server.close();
    await once(server, "close");
  };
  /** Keeps the connection open but stops reading. */
  const fallSilent = (): void => {
    for (const socket of sockets) socket.pause();
  };
  const askToReconnect = (): void => handler.broadcastReconnectNotification();
  return { link, controlPlane: double, tokensRefused, askToReconnect, fallSilent, close };
}

/** Timers that keep the process alive. */
function activeTimers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
}

describe("tRPC over a WebSocket", () => {
  controlLinkContract(start);

  test("the token is sent in the Authorization header, and a 401 invalidates it", async () => {
    const { link, controlPlane, tokensRefused, close } = await start();
    controlPlane.refuseNext(401, null);
    await expect(link.connect(new AbortController().signal)).rejects.toThrow("401");
    expect(controlPlane.authorizations).toEqual(["Bearer jwt"]);
    expect(tokensRefused).toEqual(["jwt"]);
    await close();
  });

  test("a call that receives no response times out", async () => {
    const { link, controlPlane, close } = await start(50);
    const connection = await link.connect(new AbortController().signal);
    controlPlane.silent = true;
    await expect(connection.heartbeat({ epoch: "e", generation: 0 })).rejects.toThrow();
    connection.close();
    await close();
  });

  test("requests for secrets and tokens wait for each other, so that the control plane's limit is never reached", async () => {
    const { link, controlPlane, close } = await start();
    const connection = await link.connect(new AbortController().signal);
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) => connection.workerToken({ workloadId: `agt_${n}` })),
    );
    expect(answers).toHaveLength(100);
    expect(controlPlane.mostAsking).toBeGreaterThan(1);
    expect(controlPlane.mostAsking).toBeLessThanOrEqual(MAX_LINK_CALLS / 2);
    connection.close();
    await close();
  });

  test("a rejected call reports whether and when to send it again", async () => {
    const { link, controlPlane, close } = await start();
    const connection = await link.connect(new AbortController().signal);
    const rejected = (failure: Error): Promise<unknown> => {
      controlPlane.failure = failure;
      controlPlane.failNextCall();
      return connection.events([]).catch((error: unknown) => error);
    };
    const busy = new TRPCError({ code: "TOO_MANY_REQUESTS", message: "too many" });
    expect(await rejected(busy)).toMatchObject({ name: "CallRejected", kind: "busy", retryAfterMs: 1500 });
    const bad = new TRPCError({ code: "BAD_REQUEST", message: "no such form" });
    expect(await rejected(bad)).toMatchObject({ name: "CallRejected", kind: "invalid" });
    expect(await rejected(new Error("no"))).not.toMatchObject({ name: "CallRejected" });
    connection.close();
    await close();
  });

  test("a link that was closed for flooding is reported as such, with the reason", async () => {
    const { link, controlPlane, close } = await start();
    const connection = await link.connect(new AbortController().signal);
    await connection.heartbeat({ epoch: "e", generation: 0 });
    controlPlane.closeFlooded();
    const reason = await connection.lost;
    expect(reason).toBeInstanceOf(LinkFlooded);
    expect(reason.message).toContain("too many messages");
    await close();
  });

  test("a half-open connection is detected without a call", async () => {
    const { link, fallSilent, close } = await start();
    const connection = await link.connect(new AbortController().signal);
    fallSilent();
    expect((await connection.lost).message).toContain("the link closed");
    await close();
  });

  test("a lost connection is never reopened by the library", async () => {
    const { link, controlPlane, close } = await start();
    const connection = await link.connect(new AbortController().signal);
    connection.subscribe(() => undefined);
    await connection.heartbeat({ epoch: "e", generation: 0 });
    controlPlane.drop();
    await connection.lost;
    await link.connect(new AbortController().signal);
    expect(controlPlane.authorizations).toHaveLength(2);
    await close();
  });

  test("a server that requests a new link ends this one immediately, and the library neither opens nor awaits another", async () => {
    const { link, controlPlane, askToReconnect, close } = await start();
    const connection = await link.connect(new AbortController().signal);
    await connection.heartbeat({ epoch: "e", generation: 0 });
    const timers = activeTimers();
    askToReconnect();
    expect((await connection.lost).message).toContain("requested a new link");
    await expect.poll(activeTimers).toBeLessThanOrEqual(timers);
    expect(controlPlane.authorizations).toHaveLength(1);
    await close();
  });

  test("a port without a listener is an error, not a refusal", async () => {
    const { link, close } = await start();
    await close();
    await expect(link.connect(new AbortController().signal)).rejects.toThrow("the link failed");
  });
});
