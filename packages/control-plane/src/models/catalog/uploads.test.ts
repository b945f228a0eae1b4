import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { createInferenceHost, type InferenceHost } from "@fairlead/inference/host/inference-host";
import type { InferenceLimits } from "@fairlead/inference/host/limits";
import { asKey } from "@fairlead/inference/testing/callers";
import { systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import type { TunnelTransport } from "@fairlead/wire/tunnel-transport";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { nodesCatalog } from "./model-catalog.fixture.ts";

const MIB = 1024 * 1024;

/** An engine that answers every call with 200 and `{}`. */
const tunnel: TunnelTransport = {
  open: (_request, handler) => {
    setImmediate(() => {
      handler.onHeaders(200, { "content-type": "application/json" });
      handler.onData(Buffer.from("{}"));
      handler.onEnd();
    });
    return { resume: () => undefined, abort: () => undefined };
  },
};

const ENGINE = {
  nodeId: "nod_1",
  identifier: "box",
  workload: "engine",
  absence: null,
  models: ["tiny"],
  since: 1500,
  protocols: ["chat" as const],
  chat: {},
};

let host: InferenceHost;
let reached: Record<string, number>;
const sockets: Socket[] = [];

/** Keys are projects' names; Ann owns those that begin with `ann`. */
async function start(limits: Partial<InferenceLimits> = {}): Promise<void> {
  reached = {};
  host = createInferenceHost({
    callers: { authenticate: async (secret) => asKey(secret) },
    models: nodesCatalog(() => [ENGINE], { get: () => tunnel }),
    owners: { ownerOf: (projectId) => (projectId.startsWith("ann") ? "usr_ann" : "usr_bob") },
    bounds: { reached: (bound) => void (reached[bound] = (reached[bound] ?? 0) + 1) },
    ids: systemIds(() => 0),
    clock: systemClock,
    log: pino({ level: "silent" }),
    limits,
  });
  await new Promise<void>((resolve) => host.server.listen(0, "127.0.0.1", resolve));
}

beforeEach(() => start());
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await host.drain(0);
});

const port = (): number => (host.server.address() as AddressInfo).port;

/** Announces a body, and sends only its beginning. */
async function upload(project: string, length: number, sent: Buffer | string = "{"): Promise<Socket> {
  const socket = connect(port(), "127.0.0.1");
  socket.on("error", () => undefined);
  sockets.push(socket);
  await once(socket, "connect");
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${project}\r\n`;
  socket.write(`${head}content-type: application/json\r\ncontent-length: ${length}\r\n\r\n`);
  socket.write(sent);
  return socket;
}

async function chat(project: string, bytes: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port()}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${project}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "box/tiny", messages: [{ role: "user", content: "x ".repeat(bytes / 2) }] }),
  });
  await response.text();
  return response.status;
}

const inFlight = (count: number): Promise<void> =>
  vi.waitFor(() => expect(host.load.callsInFlight).toBe(count), { interval: 2 });

describe("uploads", () => {
  test("that only announce their size leave room for other users' requests", async () => {
    for (const project of ["ann_1", "ann_2"]) for (let n = 0; n < 4; n++) await upload(project, 33_550_000);
    await inFlight(8);
    expect(await chat("bob", 100_000)).toBe(200);
    expect(await chat("ann_1", 100_000)).toBe(200);
    expect(host.load.bufferedBytes).toBeLessThanOrEqual(8 * 256 * 1024);
  });

  test("of one owner use at most the owner's share, in however many projects", async () => {
    await host.drain(0);
    await start({ maxBodyBytes: 4 * MIB, maxBufferedBytes: 8 * MIB });
    const sent = Buffer.alloc(1.8 * MIB, " ");
    for (const project of ["ann_1", "ann_2", "ann_3"]) await upload(project, 4 * MIB, sent);
    await vi.waitFor(() => expect(host.load.bufferedBytes).toBe(6 * MIB), { interval: 2 });
    expect(await chat("ann_5", 500_000)).toBe(503);
    expect(await chat("bob", 500_000)).toBe(200);
    expect(reached).toEqual({ buffered_bytes_of_owner: 1 });
  });

  test("of one owner leave room for other users' calls", async () => {
    await host.drain(0);
    await start({ maxCallsInFlight: 8 });
    for (let n = 0; n < 6; n++) await upload(`ann_${n}`, 100);
    await inFlight(6);
    expect(await chat("ann_7", 100)).toBe(503);
    expect(await chat("bob", 100)).toBe(200);
    expect(reached).toEqual({ calls_in_flight_of_owner: 1 });
  });

  test("that send almost nothing end with 408, and release their memory", async () => {
    const idle = await upload("ann_1", 33_000_000);
    await inFlight(1);
    for (let n = 0; n < 10; n++) host.pace.tick();
    const [answer] = (await once(idle, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 408 [^]*"code":"request_timeout"/);
    expect(reached).toEqual({ upload_pace: 1 });
    await inFlight(0);
    expect(host.load).toEqual({ callsInFlight: 0, bufferedBytes: 0 });
  });
});
