import { createHash, randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { IncomingRequest } from "../tunnel/tunnel-call.ts";
import { type EngineAddress, EngineConnections } from "./engine-connections.ts";
import { engineRequest } from "./engine-request.ts";
import { Forward } from "./forward.ts";
import { TestCall } from "./tunnel-call.fixture.ts";

let server: Server;
let address: EngineAddress;
let connections: EngineConnections;
/** The engine's side of the latest connection and the data received. */
let engine: Socket;
let came: Buffer[];
const sockets = new Set<Socket>();

beforeEach(async () => {
  server = createServer((socket) => {
    engine = socket;
    came = [];
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", (bytes: Buffer) => came.push(bytes));
  });
  await listen(server);
  connections = new EngineConnections();
});
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  server.close();
});

async function listen(one: Server): Promise<void> {
  one.listen(0, "127.0.0.1");
  await once(one, "listening");
  address = { host: "127.0.0.1", port: (one.address() as AddressInfo).port };
}

function forward(request: Partial<IncomingRequest> = {}): TestCall {
  const call = new TestCall(request);
  connections.run(address, new Forward(call, engineRequest(call.request, address)));
  return call;
}

const heard = (): string => Buffer.concat(came).toString("latin1");

/** A call whose request reached the engine. */
async function begun(request: Partial<IncomingRequest> = {}): Promise<TestCall> {
  came = [];
  const call = forward(request);
  await vi.waitFor(() => expect(heard()).toContain("\r\n\r\n"));
  return call;
}

/** Writes until backpressure applies. @returns a promise that resolves when it can continue */
function fill(call: TestCall): Promise<void> {
  for (;;) {
    const said = call.say(BLOCK);
    if (call.isPaused) return said;
  }
}

const UPLOAD = { method: "POST", kind: "body" } as const;
const BLOCK = Buffer.alloc(65_536, "b");
const FAULT = { status: 502, headers: { [TUNNEL_FAULT_HEADER]: "upstream_failed" }, state: "whole" };

describe("an answer", () => {
  test.each([
    ["that says its length ends with its last bytes", "content-length: 5\r\n\r\nhello", "hello", 5],
    ["in chunks", "transfer-encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nx-trailer: 1\r\n\r\n", "hello", 0],
    ["without a body", "content-length: 0\r\n\r\n", "", 0],
  ])("%s", async (...[, said, body, last]) => {
    const call = await begun();
    engine.write(`HTTP/1.1 200 OK\r\nkeep-alive: timeout=5, max=100\r\n${said}`);
    await vi.waitFor(() => expect(call).toMatchObject({ status: 200, state: "whole", last }));
    expect(call.body.toString()).toBe(body);
  });

  test.each([
    ["1.0", ""],
    ["1.1", "connection: close\r\n"],
  ])("of HTTP/%s that lasts until the engine closes", async (version, header) => {
    const call = await begun();
    engine.end(`HTTP/${version} 200 OK\r\n${header}\r\nhello`);
    await vi.waitFor(() => expect(call).toMatchObject({ state: "whole" }));
    expect(call.body.toString()).toBe("hello");
  });

  test.each([
    ["HEAD", "200 OK"],
    ["GET", "204 No Content"],
    ["GET", "304 Not Modified"],
  ])("to %s that is %s has no body, whatever it says", async (method, status) => {
    const call = await begun({ method });
    engine.write(`HTTP/1.1 ${status}\r\ncontent-length: 5\r\n\r\n`);
    await vi.waitFor(() => expect(call).toMatchObject({ state: "whole", last: 0 }));
  });

  test("brings its headers byte by byte, and those that it says twice in one sensible way", async () => {
    const call = await begun();
    engine.write(
      Buffer.from(
        "HTTP/1.1 200 OK\r\nx-name: J\xc3\xbcrgen\r\ncontent-type: a/b\r\ncontent-type: c/d\r\nvary: a\r\nvary: b\r\n" +
          "set-cookie: a\r\nset-cookie: b\r\nconnection: x-a\r\nconnection: x-b\r\nx-a: 1\r\nx-b: 1\r\ncontent-length: 0\r\n\r\n",
        "latin1",
      ),
    );
    await vi.waitFor(() => expect(call.state).toBe("whole"));
    expect(call.headers).toEqual({
      "x-name": "J\xc3\xbcrgen",
      "content-type": "a/b",
      vary: "a, b",
      "set-cookie": ["a", "b"],
      "content-length": "0",
    });
  });

  test("with a header that the tunnel cannot carry is a fault, and ends the engine's work", async () => {
    const call = await begun();
    engine.write("HTTP/1.1 200 OK\r\nx-refused: 1\r\n\r\n");
    await vi.waitFor(() => expect(call).toMatchObject(FAULT));
    await vi.waitFor(() => expect(engine.closed).toBe(true));
  });

  test("that comes before the whole body ends the call, whose rest is dropped", async () => {
    const call = await begun(UPLOAD);
    engine.pause();
    const said = fill(call);
    engine.write("HTTP/1.1 413 Payload Too Large\r\ncontent-length: 2\r\n\r\nno");
    await vi.waitFor(() => expect(call).toMatchObject({ status: 413, state: "whole" }));
    await said;
    await call.say(BLOCK);
    call.handler?.onEnd();
    engine.resume();
    await vi.waitFor(() => expect(engine.closed).toBe(true));
    expect(heard().endsWith("0\r\n\r\n")).toBe(false);
  });

  test("whose end closes the call leaves its connection to the next one", async () => {
    connections = new EngineConnections({ trialMs: 1 });
    await vi.waitFor(async () => {
      const before = sockets.size;
      const call = await begun();
      engine.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
      await vi.waitFor(() => expect(call).toMatchObject({ state: "whole", last: 5 }));
      expect(sockets.size).toBe(before);
    });
  });

  test("waits for a caller that is slow", async () => {
    const call = await begun();
    call.takes = false;
    engine.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    for (let room = true; room; ) room = engine.write(`10000\r\n${"b".repeat(65_536)}\r\n`);
    await vi.waitFor(() => expect(call.chunks).toHaveLength(1));
    engine.write("0\r\n\r\n");
    call.takes = true;
    call.handler?.onDrain();
    await vi.waitFor(() => expect(call.state).toBe("whole"));
  });
});

describe("an engine that breaks off", () => {
  test.each([
    ["closes at once", ""],
    ["closes inside its head", "HTTP/1.1 200 OK\r\ncontent-le"],
    ["is none", "SSH-2.0-OpenSSH\r\n\r\n"],
    ["says two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"],
    ["says a length and chunks", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n"],
    ["changes the protocol", "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n"],
  ])("before its answer is a fault: it %s", async (_name, said) => {
    for (const end of ["end", "resetAndDestroy"] as const) {
      const call = await begun(UPLOAD);
      engine.write(said, () => engine[end]());
      await vi.waitFor(() => expect(call).toMatchObject(FAULT));
    }
  });

  test.each([
    ["its length", "content-length: 9\r\n\r\nhalf"],
    ["its chunks", "transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"],
    ["a chunk", "transfer-encoding: chunked\r\n\r\n9\r\nhalf"],
    ["what is no chunk", "transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\nno\r\n"],
  ])("within %s breaks the call, after what it said", async (_name, said) => {
    const call = await begun();
    engine.end(`HTTP/1.1 200 OK\r\n${said}`);
    await vi.waitFor(() => expect(call.state).toBe("broken"));
    expect(call.body.toString()).toBe("half");
  });
});

describe("a request's body", () => {
  test("waits for an engine that is slow", async () => {
    const call = await begun(UPLOAD);
    engine.pause();
    const said = fill(call);
    engine.resume();
    await said;
    call.handler?.onEnd();
    await vi.waitFor(() => expect(heard().endsWith("0\r\n\r\n")).toBe(true));
  });

  test("that is cut never looks whole, and ends the engine's work at once", async () => {
    const call = await begun(UPLOAD);
    await call.say(Buffer.from("half"));
    await vi.waitFor(() => expect(heard()).toContain("half"));
    call.leave();
    await vi.waitFor(() => expect(engine.closed).toBe(true));
    expect(heard().endsWith("4\r\nhalf\r\n")).toBe(true);
    expect(call.isAnswered).toBe(false);
  });

  test("that is shorter than it says never looks whole, and is a fault", async () => {
    const call = await begun({ ...UPLOAD, headers: { "content-length": "5" } });
    await call.say(Buffer.from("half"));
    call.handler?.onEnd();
    await vi.waitFor(() => expect(call).toMatchObject(FAULT));
    await vi.waitFor(() => expect(engine.closed).toBe(true));
  });

  test("of a caller who left before there was a connection is not sent at all", async () => {
    const taken = once(server, "connection");
    const call = forward(UPLOAD);
    call.leave();
    await taken;
    await vi.waitFor(() => expect(engine.closed).toBe(true));
    expect(heard()).toBe("");
    expect(call.handler).toBeUndefined();
  });

  test.each([true, false])("and an answer of 48 MB are the same at both ends (length said: %s)", async (isSaid) => {
    const size = 48 * 1024 * 1024;
    const echo = createHttpServer((request, response) => {
      if (isSaid) response.setHeader("content-length", size);
      request.pipe(response);
    });
    await listen(echo);
    const call = forward({ ...UPLOAD, headers: isSaid ? { "content-length": String(size) } : {} });
    await vi.waitFor(() => expect(call.handler).toBeDefined());
    // A client that frequently pauses.
    const drain = setInterval(() => {
      call.takes = randomInt(4) > 0;
      if (call.takes) call.handler?.onDrain();
    }, 1);
    const sent = createHash("sha256");
    for (let at = 0; at < size; ) {
      const piece = randomBytes(Math.min(size - at, randomInt(1, 256 * 1024)));
      at += piece.length;
      sent.update(piece);
      await call.say(piece);
    }
    call.handler?.onEnd();
    await vi.waitFor(() => expect(call.state).toBe("whole"), { timeout: 20_000 });
    clearInterval(drain);
    expect(createHash("sha256").update(call.body).digest("hex")).toBe(sent.digest("hex"));
    echo.closeAllConnections();
    echo.close();
  });
});
