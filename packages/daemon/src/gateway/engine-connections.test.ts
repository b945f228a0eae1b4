import { once } from "node:events";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { text } from "node:stream/consumers";
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

async function call(): Promise<string> {
  const request = httpRequest({
    ...address,
    agent: connections.agentFor(address),
    headers: { connection: "keep-alive" },
  });
  const answered = once(request, "response") as Promise<[IncomingMessage]>;
  request.end();
  const [answer] = await answered;
  connections.onAnswer(answer, address);
  return text(answer);
}

/** Until the engine's connections are used again. */
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

/** The engine has no connection any more; of those that it ended itself, this side knows then. */
const allClosed = (): Promise<unknown> =>
  Promise.all(opened.filter((socket) => !socket.closed).map((socket) => once(socket, "close")));

describe("a connection to an engine", () => {
  test("is used again once the engine has shown that it keeps one", async () => {
    for (let at = 0; at < 3; at++) await call();
    expect(opened).toHaveLength(3);
    await pass();
    const before = opened.length;
    for (let at = 0; at < 10; at++) expect(await call()).toBe("whole");
    expect(opened).toHaveLength(before);
  });

  test("is never used again while the engine closes them after its answers without a word", async () => {
    script = (request, response) => response.end("whole", () => request.socket.end());
    for (let at = 0; at < 30; at++) expect(await call()).toBe("whole");
    await allClosed();
    for (let at = 0; at < 30; at++) expect(await call()).toBe("whole");
    expect(opened).toHaveLength(60);
  });

  test("is not used after an answer whose length was not said, while those beside it are", async () => {
    await pass();
    script = (request, response) => {
      response.writeHead(200).write("who");
      // As llama-server does, after a moment.
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

  test("is not used again when the engine has closed one that lay idle, until it has shown again that it keeps them", async () => {
    await pass();
    for (const socket of opened) socket.end();
    await allClosed();
    const before = opened.length;
    await call();
    await call();
    expect(opened).toHaveLength(before + 2);
    await pass();
  });

  test("that carries a long stream keeps no other from being the trial", async () => {
    script = (_request, response) => response.writeHead(200).write("begun");
    const stream = httpRequest({ ...address, agent: connections.agentFor(address) });
    stream.on("error", () => undefined).end();
    const [answer] = (await once(stream, "response")) as [IncomingMessage];
    answer.on("error", () => undefined);
    connections.onAnswer(answer, address);
    script = (_request, response) => response.end("whole");
    await pass();
    // Nor does its end undo what the other has shown.
    stream.destroy();
    await vi.waitFor(() => expect(opened[0]?.closed).toBe(true));
    const before = opened.length;
    await call();
    expect(opened).toHaveLength(before);
  });

  test("is closed when it has lain idle for long enough", async () => {
    connections = new EngineConnections({ idleMs: 100, trialMs: TRIAL_MS });
    await pass();
    await allClosed();
    expect(await call()).toBe("whole");
  });
});
