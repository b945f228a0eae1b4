import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { PooledCall } from "@fairlead/wire/http1/connection-pool";
import type { Http1Connection } from "@fairlead/wire/http1/http1-connection";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type EngineAddress, EngineConnections } from "./engine-connections.ts";

const TRIAL_MS = 50;

let script: (request: IncomingMessage, response: ServerResponse) => unknown;
let engine: Server;
let address: EngineAddress;
let opened: Socket[];
let connections: EngineConnections;

beforeEach(async () => {
  opened = [];
  script = (_request, response) => response.end("whole");
  engine = createServer((request, response) => script(request, response));
  engine.keepAliveTimeout = 0;
  engine.on("connection", (socket: Socket) => opened.push(socket));
  await new Promise<void>((resolve) => engine.listen(0, "127.0.0.1", resolve));
  address = { host: "127.0.0.1", port: (engine.address() as AddressInfo).port };
  connections = new EngineConnections({ idleMs: 10_000, trialMs: TRIAL_MS });
});
afterEach(() => {
  engine.closeAllConnections();
  engine.close();
});

class Call implements PooledCall {
  readonly begun = Promise.withResolvers<Http1Connection>();
  readonly answer = Promise.withResolvers<string>();
  #connection: Http1Connection | undefined;
  #body = "";

  onConnection(connection: Http1Connection): boolean {
    this.#connection = connection;
    connection.send({ method: "GET", head: "GET / HTTP/1.1\r\nhost: engine\r\n\r\n", body: [] }, this);
    return true;
  }

  onNotReached(cause: Error): void {
    this.answer.reject(cause);
  }

  onHeaders(): void {
    if (this.#connection !== undefined) this.begun.resolve(this.#connection);
  }

  onData(chunk: Buffer): boolean {
    this.#body += chunk.toString();
    return true;
  }

  onEnd(): void {
    this.answer.resolve(this.#body);
  }

  onLost(cause: Error): void {
    this.answer.reject(cause);
  }
}

async function call(): Promise<string> {
  const one = new Call();
  connections.run(address, one);
  const body = await one.answer.promise;
  // Wait for the other side too.
  await new Promise(setImmediate);
  return body;
}

/** Runs calls until the engine's connections are reused. */
async function pass(): Promise<void> {
  await vi.waitFor(
    async () => {
      const before = opened.length;
      await call();
      await call();
      expect(opened.length).toBeLessThanOrEqual(before + 1);
    },
    { interval: TRIAL_MS },
  );
}

/** Waits until the engine has no connections and this side has noticed. */
const allClosed = (): Promise<unknown> =>
  Promise.all(opened.filter((socket) => !socket.closed).map((socket) => once(socket, "close")));

describe("a connection to an engine", () => {
  test("is reused once the engine has shown that it keeps connections open", async () => {
    for (let at = 0; at < 3; at++) await call();
    expect(opened).toHaveLength(3);
    await pass();
    const before = opened.length;
    for (let at = 0; at < 10; at++) expect(await call()).toBe("whole");
    expect(opened).toHaveLength(before);
  });

  test("is never reused while the engine closes connections after its responses without announcing it", async () => {
    script = (request, response) => response.end("whole", () => request.socket.end());
    for (let at = 0; at < 30; at++) expect(await call()).toBe("whole");
    await allClosed();
    for (let at = 0; at < 30; at++) expect(await call()).toBe("whole");
    expect(opened).toHaveLength(60);
  });

  test("is not reused after a response of undeclared length, while the connections beside it are", async () => {
    await pass();
    script = (request, response) => {
      response.writeHead(200).write("who");
      // Like llama-server, after a moment.
      response.end("le", () => setImmediate(() => request.socket.destroy()));
    };
    const before = opened.length;
    for (let at = 0; at < 20; at++) expect(await call()).toBe("whole");
    expect(opened.length - before).toBeGreaterThanOrEqual(19);
    script = (_request, response) => response.end("whole");
    await call();
    const then = opened.length;
    for (let at = 0; at < 5; at++) await call();
    expect(opened).toHaveLength(then);
  });

  test("is not reused after the engine closed an idle one, until it has shown again that it keeps connections open", async () => {
    await pass();
    for (const socket of opened) socket.end();
    await allClosed();
    const before = opened.length;
    await call();
    await call();
    expect(opened).toHaveLength(before + 2);
    await pass();
  });

  test("that carries a long stream does not prevent another from being the trial", async () => {
    script = (_request, response) => response.writeHead(200).write("begun");
    const stream = new Call();
    connections.run(address, stream);
    const connection = await stream.begun.promise;
    script = (_request, response) => response.end("whole");
    await pass();
    // Its end does not affect the other's result either.
    connection.abort();
    await vi.waitFor(() => expect(opened[0]?.closed).toBe(true));
    const before = opened.length;
    await call();
    expect(opened).toHaveLength(before);
  });

  test.each([
    ["announces that it closes them", { connection: "close", "content-length": "5" }],
    ["keeps them for only a second", { "keep-alive": "timeout=1", "content-length": "5" }],
  ])("is never reused while the engine %s", async (_name, headers) => {
    script = (_request, response) => response.writeHead(200, headers).end("whole");
    for (let at = 0; at < 5; at++) {
      await call();
      await allClosed();
    }
    expect(opened).toHaveLength(5);
  });

  test("to an unreachable engine leaves the trial to the next request", async () => {
    const { port } = address;
    address = { ...address, port: 70_000 };
    await expect(call()).rejects.toThrow("Port");
    await expect(call()).rejects.toThrow("Port");
    engine.close();
    address = { ...address, port };
    await expect(call()).rejects.toMatchObject({ code: "ECONNREFUSED" });
    await new Promise<void>((resolve) => engine.listen(port, "127.0.0.1", resolve));
    await pass();
  });

  test("is closed after it has been idle for long enough", async () => {
    connections = new EngineConnections({ idleMs: 100, trialMs: TRIAL_MS });
    await pass();
    await allClosed();
    expect(await call()).toBe("whole");
  });
});
