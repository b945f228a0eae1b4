import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { TUNNEL_TOKEN_HEADER } from "@fairlead/protocol/daemon-link";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { IncomingRequest } from "./tunnel-call.ts";
import { EchoHandler, TestAnswerer, type TestCaller } from "./tunnel-caller.fixture.ts";
import { closed, type OpenTunnel, settled, stillness, TunnelStage } from "./tunnel-stage.fixture.ts";

const MB = 1024 * 1024;
/** More than all buffers to a paused reader can hold. */
const MOST_UNREAD = 16 * MB;
const EVERY_BYTE = Buffer.from(Array.from({ length: 128 }, (_, index) => 128 + index)).toString("latin1");

/** Contract of calls on the daemon. */
export function tunnelCallContract(openTunnel: OpenTunnel): void {
  const stage = new TunnelStage();
  beforeEach(async () => {
    stage.reset(await openTunnel((call) => stage.answer(call)));
  });
  afterEach(() => stage.close());

  describe("the heads of a call", () => headsContract(stage));
  describe("the bodies of a call", () => bodiesContract(stage));
  describe("the pace of a call", () => paceContract(stage));
  describe("the response of a call", () => answerContract(stage));
  describe("a caller that leaves", () => leavingContract(stage));
}

const UPLOAD = { kind: "body", method: "POST" } as const;
const WEB_SOCKET = { kind: "web-socket", method: "CONNECT" } as const;

function headsContract(stage: TunnelStage): void {
  test("contain the request, with the token kept apart", async () => {
    const headers = { [TUNNEL_TOKEN_HEADER]: "secret", "x-mine": "1" };
    const [, { call }] = await stage.begin({ workload: "a-name", method: "PUT", path: "/a/b?c=%20&d", headers });
    const { request } = call;
    expect(request).toMatchObject({ workload: "a-name", token: "secret", method: "PUT", path: "/a/b?c=%20&d" });
    expect(request.headers).toEqual({ "x-mine": "1" });
    const [, bare] = await stage.begin();
    expect(bare.call.request).toMatchObject({ token: undefined, headers: {} });
    const [, empty] = await stage.begin({ headers: { [TUNNEL_TOKEN_HEADER]: "" } });
    expect(empty.call.request.token).toBe("");
  });

  test("keep every byte of a header in both directions, and repeated headers", async () => {
    const headers = { "x-bytes": EVERY_BYTE, "x-text": Buffer.from("naïve “🌍”").toString("latin1"), "x-empty": "" };
    const [caller, { call }] = await stage.begin({ headers });
    expect(call.request.headers).toEqual(headers);
    const answer: IncomingHttpHeaders = { ...headers, "set-cookie": ["a=1; path=/", "b=2"] };
    call.respond(418, answer);
    call.end();
    await settled(caller, "whole");
    expect(caller.status).toBe(418);
    expect(caller.headers).toMatchObject(answer);
  });

  test("may be 60 kB long in both directions", async () => {
    const headers: Record<string, string> = { "x-long": "l".repeat(40_000) };
    for (let index = 0; index < 50; index++) headers[`x-header-${index}`] = String(index).repeat(150);
    const [caller, { call }] = await stage.begin({ headers });
    expect(call.request.headers).toEqual(headers);
    call.respond(200, headers);
    call.end();
    await settled(caller, "whole");
    expect(caller.headers).toMatchObject(headers);
  });

  test.each<IncomingRequest["kind"]>(["no-body", "body", "web-socket"])(
    "declare the kind of the body: %s",
    async (kind) => {
      const method = kind === "web-socket" ? "CONNECT" : "DELETE";
      const [caller, answerer] = await stage.begin({ kind, method });
      expect(answerer.call.request).toMatchObject({ kind, method });
      if (kind !== "no-body") {
        expect(answerer.ends).toBe(0);
        caller.end();
      }
      await vi.waitFor(() => expect(answerer.ends).toBe(1));
      expect(answerer.body.length).toBe(0);
    },
  );

  test("that cannot be sent are rejected, and can be replaced by others", async () => {
    const [caller, { call }] = await stage.begin();
    expect(() => call.respond(200, { "bad name": "x" })).toThrow();
    expect(call.isAnswered).toBe(false);
    call.respond(502, { "x-good": "1" });
    expect(call.isAnswered).toBe(true);
    call.end();
    await settled(caller, "whole");
    expect(caller).toMatchObject({ status: 502, headers: { "x-good": "1" } });
  });
}

function bodiesContract(stage: TunnelStage): void {
  test("travel in both directions at the same time, 48 MB byte for byte", async () => {
    stage.answer = (call) => void new EchoHandler(call);
    const bytes = randomBytes(48 * MB);
    const caller = stage.call(UPLOAD);
    await caller.writer.send(bytes);
    caller.end();
    await settled(caller, "whole");
    expect(caller.body.length).toBe(bytes.length);
    expect(caller.body.bytes().equals(bytes)).toBe(true);
  });

  test.each([
    [100, 3000],
    [1000, 300],
    [5000, 60],
  ])("of %i concurrent calls are not mixed up", async (calls, step) => {
    stage.answer = (call) => void new EchoHandler(call);
    const all = Array.from({ length: calls }, (_, index) => ({
      caller: stage.call(UPLOAD),
      bytes: randomBytes((index % 100) * step),
    }));
    await Promise.all(
      all.map(async ({ caller, bytes }) => {
        await caller.writer.send(bytes);
        caller.end();
        await settled(caller, "whole");
        expect(caller.body.bytes().equals(bytes)).toBe(true);
      }),
    );
  });

  test("are not read before the call is handled, and lose nothing", async () => {
    const [caller, call] = await stage.arrive(UPLOAD);
    const bytes = randomBytes(32 * MB);
    const sent = caller.writer.send(bytes).then(() => caller.end());
    expect(await stillness(() => caller.writer.written)).toBeLessThan(MOST_UNREAD);
    const answerer = new TestAnswerer(call);
    await sent;
    await vi.waitFor(() => expect(answerer.ends).toBe(1), 20_000);
    expect(answerer.body.bytes().equals(bytes)).toBe(true);
  });

  test("that arrived completely before the call was handled are complete", async () => {
    const [caller, call] = await stage.arrive(UPLOAD);
    await caller.writer.send(Buffer.from("all of it"));
    caller.end();
    await stage.ask();
    const answerer = new TestAnswerer(call);
    await vi.waitFor(() => expect(answerer.ends).toBe(1));
    expect(answerer.body.toString()).toBe("all of it");
  });

  test("of a WebSocket end independently, whichever ends first", async () => {
    for (const first of ["caller", "answerer"] as const) {
      const [caller, answerer] = await stage.begin(WEB_SOCKET);
      answerer.call.respond(200, {});
      if (first === "caller") {
        caller.end();
        await vi.waitFor(() => expect(answerer.ends).toBe(1));
        expect(answerer.closes).toBe(0);
        answerer.call.write(Buffer.from("still here"));
        await vi.waitFor(() => expect(caller.body.toString()).toBe("still here"));
        answerer.call.end();
      } else {
        await caller.writer.send(Buffer.from("last words"));
        caller.end();
        answerer.call.end(Buffer.from("bye"));
        await vi.waitFor(() => expect(answerer.body.toString()).toBe("last words"));
      }
      await settled(caller, "whole");
      await closed(answerer);
    }
  });
}

function paceContract(stage: TunnelStage): void {
  test("is set by the reader of the response, and other calls continue", async () => {
    const [caller, answerer] = await stage.begin();
    caller.pause();
    const bytes = randomBytes(48 * MB);
    answerer.call.respond(200, {});
    const sent = answerer.writer.send(bytes).then(() => answerer.call.end());
    expect(await stillness(() => answerer.writer.written)).toBeLessThan(MOST_UNREAD);
    await stage.ask();
    expect(caller.state).toBe("open");
    caller.resume();
    await sent;
    await settled(caller, "whole");
    expect(caller.body.bytes().equals(bytes)).toBe(true);
  });

  test("is set by the reader of the body, and other calls continue", async () => {
    const [caller, answerer] = await stage.begin(UPLOAD);
    answerer.pause();
    const bytes = randomBytes(48 * MB);
    const sent = caller.writer.send(bytes).then(() => caller.end());
    expect(await stillness(() => caller.writer.written)).toBeLessThan(MOST_UNREAD);
    await stage.ask();
    expect(answerer.ends).toBe(0);
    answerer.resume();
    await sent;
    await vi.waitFor(() => expect(answerer.ends).toBe(1), 20_000);
    expect(answerer.body.bytes().equals(bytes)).toBe(true);
  });

  test("of many callers that do not read lets other calls continue", async () => {
    const slow = await Promise.all(Array.from({ length: 20 }, () => startSlow(stage)));
    await stage.ask();
    for (const caller of slow) caller.resume();
    await Promise.all(slow.map((caller) => settled(caller, "whole")));
    expect(slow.map(({ body }) => body.length)).toEqual(slow.map(() => 2 * MB));
  });
}

/** A response of 2 MB to a client that does not read yet. */
async function startSlow(stage: TunnelStage): Promise<TestCaller> {
  const [caller, call] = await stage.arrive();
  const { writer } = new TestAnswerer(call);
  caller.pause();
  call.respond(200, {});
  void writer.send(Buffer.alloc(2 * MB)).then(() => call.end());
  return caller;
}

function answerContract(stage: TunnelStage): void {
  test("ends with its last bytes, or without any", async () => {
    const [caller, { call }] = await stage.begin();
    call.respond(200, {});
    call.write(Buffer.from("first, "));
    call.end(Buffer.from("last"));
    await settled(caller, "whole");
    expect(caller.body.toString()).toBe("first, last");
    for (const [method, status] of [
      ["GET", 200],
      ["GET", 204],
      ["GET", 304],
      ["HEAD", 200],
    ] as const) {
      const [bare, answerer] = await stage.begin({ method });
      answerer.call.respond(status, {});
      answerer.call.end();
      await settled(bare, "whole");
      expect(bare).toMatchObject({ status, body: { length: 0 } });
      await closed(answerer);
    }
  });

  test("arrives piece by piece, before it is complete", async () => {
    const [caller, { call }] = await stage.begin();
    call.respond(200, {});
    await vi.waitFor(() => expect(caller.status).toBe(200));
    for (const said of ["one", "onetwo"]) {
      call.write(Buffer.from(said.slice(-3)));
      await vi.waitFor(() => expect(caller.body.toString()).toBe(said));
    }
    expect(caller.state).toBe("open");
  });

  test("may arrive before the body is complete, which is then not reported as complete", async () => {
    const [caller, answerer] = await stage.begin(UPLOAD);
    await caller.writer.send(Buffer.from("half"));
    await vi.waitFor(() => expect(answerer.body.toString()).toBe("half"));
    answerer.call.respond(413, {});
    answerer.call.end(Buffer.from("too much"));
    await settled(caller, "whole");
    expect(caller.status).toBe(413);
    expect(caller.body.toString()).toBe("too much");
    await closed(answerer);
    expect(answerer.ends).toBe(0);
  });

  test("may be sent without handling the call, and the body is then discarded", async () => {
    const [caller, call] = await stage.arrive(UPLOAD);
    const onClosed = vi.fn<() => void>();
    call.onceClosed(onClosed);
    void caller.writer.send(Buffer.alloc(4 * MB)).then(() => caller.end());
    call.respond(503, {});
    call.end();
    call.resume();
    await settled(caller, "whole");
    expect(caller.status).toBe(503);
    await vi.waitFor(() => expect(onClosed).toHaveBeenCalledOnce());
  });

  test("that is aborted is delivered as far as it was written, and is not complete", async () => {
    const [caller, answerer] = await stage.begin();
    answerer.call.respond(200, { "x-mine": "1" });
    caller.pause();
    const bytes = randomBytes(2 * MB);
    answerer.call.write(bytes);
    answerer.call.break(new Error("no more"));
    expect(answerer.call.isClosed).toBe(true);
    answerer.call.write(Buffer.from("too late"));
    answerer.call.end();
    await vi.waitFor(() => expect(caller.status).toBe(200));
    caller.resume();
    await settled(caller, "failed");
    expect(caller.headers).toMatchObject({ "x-mine": "1" });
    expect(caller.body.bytes().equals(bytes)).toBe(true);
    await closed(answerer);
  });

  test.each(["nothing", "a head"])("that is aborted after %s fails the caller", async (said) => {
    const [caller, answerer] = await stage.begin(UPLOAD);
    if (said === "a head") answerer.call.respond(200, {});
    answerer.call.break(new Error("no more"));
    await settled(caller, "failed");
    expect(caller.status).toBe(said === "a head" ? 200 : undefined);
    await closed(answerer);
    expect(answerer.ends).toBe(0);
    await stage.ask();
  });

  test("that is complete can no longer be aborted", async () => {
    const [caller, answerer] = await stage.begin();
    answerer.call.respond(200, {});
    answerer.call.end(Buffer.from("all"));
    answerer.call.break(new Error("too late"));
    await settled(caller, "whole");
    expect(caller.body.toString()).toBe("all");
  });
}

function leavingContract(stage: TunnelStage): void {
  /** Further calls have no effect. */
  const expectOver = async (answerer: TestAnswerer): Promise<void> => {
    await closed(answerer);
    const { call } = answerer;
    expect(call.isClosed).toBe(true);
    if (!call.isAnswered) call.respond(200, {});
    expect(call.write(Buffer.from("x"))).toBe(true);
    call.resume();
    call.break(new Error("x"));
    call.end(Buffer.from("x"));
    await stage.ask();
    expect(answerer).toMatchObject({ closes: 1, ends: answerer.call.request.kind === "no-body" ? 1 : 0 });
  };

  test("before the response ends the call", async () => {
    const [caller, answerer] = await stage.begin();
    await vi.waitFor(() => expect(answerer.ends).toBe(1));
    caller.abort();
    await expectOver(answerer);
  });

  test("in the middle of the response ends the call, read or not", async () => {
    for (const isPaused of [false, true]) {
      const [caller, answerer] = await stage.begin();
      await vi.waitFor(() => expect(answerer.ends).toBe(1));
      if (isPaused) caller.pause();
      answerer.call.respond(200, {});
      void answerer.writer.send(Buffer.alloc(isPaused ? 48 * MB : 1000));
      await vi.waitFor(() => expect(caller.body.length).toBeGreaterThan(0));
      caller.abort();
      await expectOver(answerer);
    }
  });

  test("in the middle of the body ends the call, read or not, and the body is not complete", async () => {
    for (const isPaused of [false, true]) {
      const [caller, answerer] = await stage.begin(UPLOAD);
      if (isPaused) answerer.pause();
      void caller.writer.send(Buffer.alloc(isPaused ? 48 * MB : 1000));
      await vi.waitFor(() => expect(answerer.body.length).toBeGreaterThan(0));
      caller.abort();
      await expectOver(answerer);
    }
  });

  test("before the call is handled ends the call", async () => {
    const [caller, call] = await stage.arrive(UPLOAD);
    const onClosed = vi.fn<() => void>();
    call.onceClosed(onClosed);
    await caller.writer.send(Buffer.alloc(1000));
    caller.abort();
    await vi.waitFor(() => expect(onClosed).toHaveBeenCalledOnce());
    expect(call.isClosed).toBe(true);
    await expectOver(new TestAnswerer(call));
  });

  test("because the connection is lost ends every call, and no partial body looks complete", async () => {
    const [silent, unanswered] = await stage.begin();
    const [uploading, taking] = await stage.begin(UPLOAD);
    const [reading, answering] = await stage.begin(WEB_SOCKET);
    answering.call.respond(200, {});
    answering.call.write(Buffer.from("half"));
    await uploading.writer.send(Buffer.from("half"));
    await vi.waitFor(() => expect([reading.body.length, taking.body.length]).toEqual([4, 4]));
    stage.lose();
    for (const answerer of [unanswered, taking, answering]) await closed(answerer);
    for (const caller of [silent, uploading, reading]) await settled(caller, "failed");
    expect([taking.ends, answering.ends]).toEqual([0, 0]);
  });
}
