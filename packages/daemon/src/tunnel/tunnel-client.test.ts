import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TUNNEL_UPGRADE } from "@fairlead/protocol/daemon-link";
import { systemClock } from "@fairlead/protocol/values/clock";
import { YamuxSession } from "@fairlead/wire/yamux/session";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { startTunnel, type Tunnel, type TunnelClientOptions } from "./tunnel-client.ts";
import { callThrough, settled, type TunnelHarness } from "./tunnel-stage.fixture.ts";
import { YamuxCaller } from "./yamux-caller.fixture.ts";

const SWITCH = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${TUNNEL_UPGRADE}\r\n\r\n`;
const TIMING = {
  pingIntervalMs: 20,
  pingTimeoutMs: 300,
  backoff: { baseMs: 1, maxMs: 5 },
  refusedMs: 10,
  steadyMs: 0,
  upgradeMs: 2000,
};

/** The platform host's reaction to a tunnel request. */
type Answer = (socket: Duplex) => void;

let platform: Server;
let port: number;
let answers: Answer[];
let asked: IncomingMessage[];
let sessions: YamuxSession[];
let sockets: Set<Socket>;
let tunnel: Tunnel | undefined;

/** Accepts the tunnel, like the control plane. */
const accept: Answer = (socket) => {
  socket.write(SWITCH);
  sessions.push(new YamuxSession({ socket, clock: systemClock, onClose: () => undefined }));
};

const refuse =
  (status: number, headers = ""): Answer =>
  (socket) =>
    void socket.end(`HTTP/1.1 ${status} No\r\nConnection: close\r\n${headers}Content-Length: 0\r\n\r\n`);

beforeEach(async () => {
  answers = [];
  asked = [];
  sessions = [];
  sockets = new Set();
  platform = createServer();
  platform.on("connection", (socket) => sockets.add(socket));
  platform.on("upgrade", (request, socket) => {
    asked.push(request);
    socket.on("error", () => undefined);
    (answers.shift() ?? accept)(socket);
  });
  await new Promise<void>((resolve) => platform.listen(0, "127.0.0.1", resolve));
  ({ port } = platform.address() as AddressInfo);
});

afterEach(async () => {
  await tunnel?.close();
  tunnel = undefined;
  for (const socket of sockets) socket.destroy();
  platform.close();
});

function start(options: Partial<TunnelClientOptions> = {}): Tunnel {
  tunnel = startTunnel({
    platformUrl: `http://127.0.0.1:${port}/`,
    nodeId: "nod_1",
    token: () => Promise.resolve(`token-${asked.length + 1}`),
    handler: (call) => {
      call.respond(200, {});
      call.end(Buffer.from(`you asked for ${call.request.path}`));
    },
    clock: systemClock,
    random: () => 0.5,
    log: pino({ level: "silent" }),
    timing: TIMING,
    ...options,
  });
  return tunnel;
}

function lastSession(): YamuxSession {
  const session = sessions.at(-1);
  if (session === undefined) throw new Error("no session");
  return session;
}

/** Waits for this many tunnels and a request through the last one. */
async function tunnelsToWork(count: number): Promise<void> {
  await vi.waitFor(() => expect(sessions.length).toBe(count), 5000);
  const session = lastSession();
  const open: TunnelHarness["open"] = (request, handler) => new YamuxCaller(session.open(), request, handler);
  const caller = callThrough({ open }, { path: "/x" });
  await settled(caller, "whole");
  expect(caller.body.toString()).toBe("you asked for /x");
}

describe("the daemon's tunnel", () => {
  test("connects with its identity and serves incoming calls", async () => {
    const { state } = start();
    expect(state).toBe("connecting");
    await tunnelsToWork(1);
    expect(tunnel?.state).toBe("open");
    expect(asked[0]).toMatchObject({
      url: "/v1/nodes/nod_1/tunnel",
      headers: { upgrade: TUNNEL_UPGRADE, authorization: "Bearer token-1" },
    });
  });

  test("reconnects with a new token whenever it is lost", async () => {
    start();
    await tunnelsToWork(1);
    lastSession().destroy();
    await tunnelsToWork(2);
    for (const socket of sockets) socket.resetAndDestroy();
    await tunnelsToWork(3);
    expect(asked.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer token-1",
      "Bearer token-2",
      "Bearer token-3",
    ]);
  });

  test("detects a platform host that fell silent", async () => {
    answers.push((socket) => void socket.write(SWITCH));
    start();
    await tunnelsToWork(1);
    expect(asked.length).toBe(2);
  });

  test("retries after every kind of failure", async () => {
    answers.push(
      refuse(500),
      (socket) => void socket.destroy(),
      (socket) =>
        void socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"),
      (socket) => void socket.end(SWITCH),
      (socket) => void socket.write(`${SWITCH}this is no frame at all, and long enough to tell`),
    );
    start();
    await tunnelsToWork(1);
    expect(asked.length).toBe(6);
  });

  test("gives up waiting for a response that does not arrive", async () => {
    answers.push(() => undefined);
    start({ timing: { ...TIMING, upgradeMs: 50 } });
    await tunnelsToWork(1);
  });

  test("retries when there is no token or no listener", async () => {
    let calls = 0;
    start({
      token: () => {
        calls++;
        return calls === 1 ? Promise.reject(new Error("no identity yet")) : Promise.resolve("token");
      },
    });
    await tunnelsToWork(1);
    await tunnel?.close();
    platform.close();
    for (const socket of sockets) socket.destroy();
    start();
    await vi.waitFor(() => expect(tunnel?.state).toBe("waiting"));
    platform.listen(port, "127.0.0.1");
    await once(platform, "listening");
    await tunnelsToWork(2);
  });

  test.each([401, 403, 404])("reports a refusal (%i), and keeps trying", async (status) => {
    answers.push(refuse(status));
    const onRefused = vi.fn<(status: number) => void>();
    start({ onRefused });
    await tunnelsToWork(1);
    expect(onRefused.mock.calls).toEqual([[status]]);
  });

  test("obeys retry-after, and closes promptly while it waits", async () => {
    answers.push(refuse(503, "Retry-After: 3600\r\n"));
    const onRefused = vi.fn<(status: number) => void>();
    const waiting = start({ onRefused });
    await vi.waitFor(() => expect(waiting.state).toBe("waiting"));
    await waiting.close();
    expect(waiting.state).toBe("closed");
    expect(asked.length).toBe(1);
    expect(onRefused).not.toHaveBeenCalled();
  });

  test("closes promptly while it is open, and while it is being opened", async () => {
    const open = start();
    await tunnelsToWork(1);
    await open.close();
    await vi.waitFor(() => expect(lastSession().isClosed).toBe(true));
    answers.push(() => undefined);
    const opening = start();
    await vi.waitFor(() => expect(asked.length).toBe(2));
    await opening.close();
    expect(opening.state).toBe("closed");
  });

  test("closes on a signal too", async () => {
    const stop = new AbortController();
    const signalled = start({ signal: stop.signal });
    await tunnelsToWork(1);
    stop.abort();
    await vi.waitFor(() => expect(signalled.state).toBe("closed"));
  });
});
