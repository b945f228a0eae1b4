import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ANSWER, CHAT, HostStage } from "./host-stage.fixture.ts";

const HEAD = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer flk_x\r\n";
/** Short for a test, long beside what a call takes. */
const limits = { headersMs: 400, uploadMs: 800 };

let stage: HostStage;
const sockets: Socket[] = [];
beforeEach(async () => {
  stage = new HostStage();
  stage.place("one", (far) => {
    far.respond(200, { "content-type": "application/json" });
    far.write(JSON.stringify(ANSWER));
    far.end();
  });
  await stage.open({ limits });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await stage.close();
});

function open(): Socket {
  const socket = connect(Number(new URL(stage.url).port), "127.0.0.1");
  socket.on("error", () => undefined);
  sockets.push(socket);
  return socket;
}

/** All that comes until the connection is closed. */
async function text(socket: Socket): Promise<string> {
  const pieces: Buffer[] = [];
  socket.on("data", (piece: Buffer) => pieces.push(piece));
  await new Promise((resolve) => socket.once("close", resolve));
  return Buffer.concat(pieces).toString();
}

/** Sends a byte now and again, for as long as anybody listens. */
function trickle(socket: Socket, bytes: string): void {
  let sent = 0;
  const timer = setInterval(() => socket.write(bytes[sent++ % bytes.length] ?? ""), 20);
  socket.once("close", () => clearInterval(timer));
}

const served = async (): Promise<number> => {
  const response = await stage.chat();
  await response.text();
  return response.status;
};

describe("callers that hold connections", () => {
  test("are disconnected if their headers do not end, and others are served meanwhile", async () => {
    const slow = open();
    slow.write(`${HEAD}x-slow: `);
    trickle(slow, "a");
    const cut = text(slow);
    expect(await served()).toBe(200);
    expect(await cut).toMatch(/^HTTP\/1\.1 408 [^]*"code":"request_timeout"/);
    expect(await served()).toBe(200);
  });

  test("are disconnected if their body does not end, and its memory is released", async () => {
    const slow = open();
    slow.write(`${HEAD}content-length: 100000\r\n\r\n{"model":"`);
    trickle(slow, "a");
    const cut = text(slow);
    expect(await served()).toBe(200);
    expect(await cut).toMatch(/^HTTP\/1\.1 408 [^]*"code":"request_timeout"/);
    await vi.waitFor(() => expect(stage.host?.load).toEqual({ callsInFlight: 0, bufferedBytes: 0 }));
  });

  test("are disconnected if they send nothing, however many there are", async () => {
    const idle = Array.from({ length: 200 }, () => text(open()));
    expect(await served()).toBe(200);
    for (const answer of await Promise.all(idle)) expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(await served()).toBe(200);
  });

  test("can be idle between two calls for longer than a request head may take", async () => {
    const caller = open();
    const answers: string[] = [];
    caller.on("data", (piece: Buffer) => answers.push(piece.toString()));
    const body = JSON.stringify(CHAT);
    caller.write(`${HEAD}content-length: ${body.length}\r\n\r\n${body}`);
    const silent = text(open());
    // Both have rested for so long now that a connection which began with them is cut off.
    await silent;
    expect(answers.join("")).toMatch(/^HTTP\/1\.1 200 /);
    answers.length = 0;
    caller.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    await new Promise((resolve) => caller.once("data", resolve));
    expect(answers.join("")).toMatch(/^HTTP\/1\.1 200 /);
  });

  test("get 431 if their headers are too large or too many, and headers are never dropped silently", async () => {
    const large = open();
    large.write(`${HEAD}x-large: ${"a".repeat(70_000)}\r\n\r\n`);
    expect(await text(large)).toMatch(/^HTTP\/1\.1 431 [^]*"code":"headers_too_large"/);
    const headers = (count: number): Record<string, string> =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`x-${at}`, "1"]));
    const many = await stage.chat(undefined, { headers: headers(250) });
    expect(many.status).toBe(431);
    expect(await many.json()).toMatchObject({ error: { code: "headers_too_large" } });
    expect((await stage.chat(undefined, { headers: headers(150) })).status).toBe(200);
  });
});
