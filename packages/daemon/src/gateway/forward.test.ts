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

describe("a response", () => {
  test.each([
    ["of declared length ends with its last bytes", "content-length: 5\r\n\r\nhello", "hello", 5],
    [
      "in chunks ends after its last bytes",
      "transfer-encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nx-trailer: 1\r\n\r\n",
      "hello",
      0,
    ],
    ["without a body ends with its headers", "content-length: 0\r\n\r\n", "", 0],
  ])("%s", async (...[, said, body, last]) => {
    const call = await begun();
    engine.write(`HTTP/1.1 200 OK\r\nkeep-alive: timeout=5, max=100\r\n${said}`);
    await vi.waitFor(() => expect(call).toMatchObject({ status: 200, state: "whole", last }));
    expect(call.body.toString()).toBe(body);
  });

  test.each([
    ["1.0", ""],
    ["1.1", "connection: close\r\n"],
  ])("over HTTP/%s without a length ends when the engine closes the connection", async (version, header) => {
    const call = await begun();
    engine.end(`HTTP/${version} 200 OK\r\n${header}\r\nhello`);
    await vi.waitFor(() => expect(call).toMatchObject({ state: "whole" }));
    expect(call.body.toString()).toBe("hello");
  });

  test.each([
    ["HEAD", "200 OK"],
    ["GET", "204 No Content"],
    ["GET", "304 Not Modified"],
  ])("to %s with status %s has no body, whatever its headers declare", async (method, status) => {
    const call = await begun({ method });
    engine.write(`HTTP/1.1 ${status}\r\ncontent-length: 5\r\n\r\n`);
    await vi.waitFor(() => expect(call).toMatchObject({ state: "whole", last: 0 }));
  });

  test("passes on its headers byte for byte, and resolves repeated ones in one consistent way", async () => {
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

  test("with a header that the tunnel cannot carry is a fault, and aborts the engine's request", async () => {
    const call = await begun();
    engine.write("HTTP/1.1 200 OK\r\nx-refused: 1\r\n\r\n");
    await vi.waitFor(() => expect(call).toMatchObject(FAULT));
    await vi.waitFor(() => expect(engine.closed).toBe(true));
  });

  test("that arrives before the whole body ends the call, and the rest of the body is dropped", async () => {
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

  test("whose end closes the call leaves its connection to the next call", async () => {
    connections = new EngineConnections({ trialMs: 1 });
    await vi.waitFor(async () => {
      const before = sockets.size;
      const call = await begun();
      engine.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
      await vi.waitFor(() => expect(call).toMatchObject({ state: "whole", last: 5 }));
      expect(sockets.size).toBe(before);
    });
  });

  test("waits for a slow caller", async () => {
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

describe("an engine that fails", () => {
  test.each([
    ["closes immediately", ""],
    ["closes in the middle of its headers", "HTTP/1.1 200 OK\r\ncontent-le"],
    ["does not speak HTTP", "SSH-2.0-OpenSSH\r\n\r\n"],
    ["declares two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"],
    ["declares a length and chunks", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n"],
    ["changes the protocol", "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n"],
  ])("before its response causes a fault: it %s", async (_name, said) => {
    for (const end of ["end", "resetAndDestroy"] as const) {
      const call = await begun(UPLOAD);
      engine.write(said, () => engine[end]());
      await vi.waitFor(() => expect(call).toMatchObject(FAULT));
    }
  });

  test.each([
    ["a body of declared length", "content-length: 9\r\n\r\nhalf"],
    ["a chunked body", "transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"],
    ["a chunk", "transfer-encoding: chunked\r\n\r\n9\r\nhalf"],
    ["an invalid chunk", "transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\nno\r\n"],
  ])("within %s aborts the call after the bytes that it sent", async (_name, said) => {
    const call = await begun();
    engine.end(`HTTP/1.1 200 OK\r\n${said}`);
    await vi.waitFor(() => expect(call.state).toBe("broken"));
    expect(call.body.toString()).toBe("half");
  });
});

describe("a request's body", () => {
  test("waits for a slow engine", async () => {
    const call = await begun(UPLOAD);
    engine.pause();
    const said = fill(call);
    engine.resume();
    await said;
    call.handler?.onEnd();
    await vi.waitFor(() => expect(heard().endsWith("0\r\n\r\n")).toBe(true));
  });

  test("that is cut off never looks complete, and immediately aborts the engine's request", async () => {
    const call = await begun(UPLOAD);
    await call.say(Buffer.from("half"));
    await vi.waitFor(() => expect(heard()).toContain("half"));
    call.leave();
    await vi.waitFor(() => expect(engine.closed).toBe(true));
    expect(heard().endsWith("4\r\nhalf\r\n")).toBe(true);
    expect(call.isAnswered).toBe(false);
  });

  test("that is shorter than declared never looks complete, and is a fault", async () => {
    const call = await begun({ ...UPLOAD, headers: { "content-length": "5" } });
    await call.say(Buffer.from("half"));
    call.handler?.onEnd();
    await vi.waitFor(() => expect(call).toMatchObject(FAULT));
    await vi.waitFor(() => expect(engine.closed).toBe(true));
  });

  test("of a caller that left before there was a connection is not sent at all", async () => {
    const taken = once(server, "connection");
    const call = forward(UPLOAD);
    call.leave();
    await taken;
    await vi.waitFor(() => expect(engine.closed).toBe(true));
    expect(heard()).toBe("");
    expect(call.handler).toBeUndefined();
  });

  test.each([true, false])(
    "and a response of 48 MB are identical at both ends (length declared: %s)",
    async (isSaid) => {
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
    },
  );
});
