import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { UploadPace } from "./upload-pace.ts";

const WINDOW = 10;
const LEAST = 1000;

let server: Server;
let pace: UploadPace;
let slow: number;
const sockets: Socket[] = [];

beforeEach(async () => {
  slow = 0;
  pace = new UploadPace({ bytesPerSecond: LEAST, onSlow: () => slow++ });
  // The timer of its own would tick in between.
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(() => {
  vi.useRealTimers();
  for (const socket of sockets.splice(0)) socket.destroy();
  server.closeAllConnections();
  server.close();
});

interface Begun {
  readonly client: Socket;
  readonly request: IncomingMessage;
  readonly fail: ReturnType<typeof vi.fn>;
  readonly unwatch: () => void;
  /** Sends this many bytes, and waits until they have arrived. */
  readonly send: (bytes: number) => Promise<void>;
}

async function begin(): Promise<Begun> {
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.on("error", () => undefined);
  sockets.push(client);
  const arrived = once(server, "request");
  client.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 33000000\r\n\r\n");
  const [request] = (await arrived) as [IncomingMessage];
  const fail = vi.fn();
  const unwatch = pace.watch(request, fail);
  request.on("error", () => undefined).resume();
  const send = async (bytes: number): Promise<void> => {
    const until = request.socket.bytesRead + bytes;
    client.write(Buffer.alloc(bytes, "x"));
    await vi.waitFor(() => expect(request.socket.bytesRead).toBeGreaterThanOrEqual(until), { interval: 1 });
  };
  return { client, request, fail, unwatch, send };
}

const ticks = (count: number): void => {
  for (let n = 0; n < count; n++) pace.tick();
};

describe("an upload", () => {
  test("that is too slow is aborted once, after a whole window", async () => {
    const { fail, send } = await begin();
    await send(1);
    ticks(WINDOW - 1);
    expect(fail).not.toHaveBeenCalled();
    ticks(WINDOW);
    expect(fail).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: "request_timeout" }));
    expect(slow).toBe(1);
    expect(pace.size).toBe(0);
  });

  test("that is fast enough on average continues, however unevenly it arrives", async () => {
    const { fail, send } = await begin();
    for (let round = 0; round < 3; round++) {
      await send(LEAST * WINDOW);
      ticks(WINDOW);
    }
    expect(fail).not.toHaveBeenCalled();
  });

  test("that is fast at first and then stops is aborted one window later", async () => {
    const { fail, send } = await begin();
    await send(LEAST * WINDOW * 100);
    ticks(WINDOW);
    expect(fail).not.toHaveBeenCalled();
    ticks(1);
    expect(fail).toHaveBeenCalledTimes(1);
  });

  test("is not measured while it waits for the server", async () => {
    const { request, fail } = await begin();
    request.pause();
    ticks(3 * WINDOW);
    expect(fail).not.toHaveBeenCalled();
    request.resume();
    ticks(WINDOW);
    expect(fail).toHaveBeenCalledTimes(1);
  });

  test("is no longer checked once it ends, and the timer stops when none is left", async () => {
    const timers = vi.getTimerCount();
    const { fail, unwatch } = await begin();
    expect(vi.getTimerCount()).toBe(timers + 1);
    unwatch();
    ticks(2 * WINDOW);
    expect(fail).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(timers);
  });
});
