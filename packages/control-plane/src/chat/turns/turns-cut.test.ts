import { connect } from "node:net";
import { responsesOrderProblems } from "@fairlead/dialects/testing/responses-order";
import type { ScriptedUpstream } from "@fairlead/inference/testing/scripted-upstream";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  begin,
  bodyOf,
  type ChatSetting,
  ChatStage,
  finish,
  PROJECT,
  saying,
  wordChunk,
} from "../chat-stage.fixture.ts";

/** Answers that do not come to their end. */

let stage: ChatStage;
afterEach(() => stage.closeChat());

/** A turn of which the first words were said. */
async function halfSaid(setting: ChatSetting = {}, asked: { path?: string; body?: object } = {}) {
  stage = new ChatStage();
  await stage.openChat(setting);
  const upstream = stage.place("a", (far) => {
    begin(far);
    far.write(wordChunk("Half"));
    far.write(wordChunk(" said"));
  });
  const answer = await stage.sayOpen("Go on.", asked);
  await answer.until(" said");
  const [far] = upstream.calls;
  if (far === undefined) throw new Error("not called");
  return { upstream, answer, far, session: answer.session };
}

const stop = (session: string | null): Promise<Response> =>
  stage.ask(`/v1/chat/sessions/${session}:stop`, {}, { project: PROJECT });
const HALF = ["user: Go on.", "assistant: Half said (incomplete)"];

describe("a caller that disconnects", () => {
  test("stops the model immediately; the partial response is kept and is part of the next turn", async () => {
    const { answer, far, session, upstream } = await halfSaid();
    await answer.leave();
    await vi.waitFor(() => expect(far.closed).toBe(true));
    await vi.waitFor(async () => expect(await stage.history(session)).toEqual(HALF));
    expect([...stage.counters.turns()]).toEqual([["client_left", 1]]);
    stage.candidates = [];
    const next = stage.place("b", saying("Yes."));
    await stage.say("And?", { session });
    expect(upstream.calls).toHaveLength(1);
    expect(await bodyOf(next)).toMatchObject({
      messages: [{ content: "Go on." }, { role: "assistant", content: "Half said" }, { content: "And?" }],
    });
  });

  test("loses nothing if the response is configured to continue", async () => {
    const { answer, far, session } = await halfSaid({ onLeave: "continue" });
    await answer.leave();
    far.write(wordChunk(", whole"));
    finish(far);
    await vi.waitFor(async () => {
      expect(await stage.history(session)).toEqual(["user: Go on.", "assistant: Half said, whole"]);
    });
    expect(far.closed).toBe(false);
  });

  test.each([false, true])(
    "and asks again while the response continues gets that response, once (in a named session: %s)",
    async (named) => {
      stage = new ChatStage();
      await stage.openChat({ onLeave: "continue" });
      const upstream = stage.place("a", (far) => {
        begin(far);
        far.write(wordChunk("Half"));
      });
      const session = named ? (await stage.say("/new")).session : null;
      const answer = await stage.sayOpen("Go on.", { session });
      await answer.until("Half");
      await answer.leave();
      await vi.waitFor(() => expect(stage.openAnswers).toBe(0));
      const again = stage.say("Go on.", { session });
      await vi.waitFor(() => expect(stage.host?.load.callsInFlight).toBe(2));
      const [far] = upstream.calls;
      far?.write(wordChunk(", whole"));
      if (far) finish(far);
      const told = await again;
      expect(told.session).toBe(answer.session);
      expect(told.headers.get("idempotency-replayed")).toBe("true");
      expect(told.text).toContain("Half, whole");
      expect(upstream.calls).toHaveLength(1);
      expect(await stage.history(told.session)).toEqual(["user: Go on.", "assistant: Half, whole"]);
    },
  );

  test("in the chat dialect, after the finish and before [DONE], gets the whole response stored", async () => {
    const { answer, far, session } = await halfSaid({}, { path: "/v1/chat/completions", body: { stream: true } });
    far.write('data: {"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n');
    await answer.leave();
    await vi.waitFor(async () => {
      expect(await stage.history(session)).toEqual(["user: Go on.", "assistant: Half said"]);
    });
  });

  test("before anything was generated leaves the question and no response", async () => {
    stage = new ChatStage();
    await stage.openChat();
    const upstream = stage.place("a");
    const session = (await stage.say("/new")).session;
    const leaving = new AbortController();
    const asking = stage.say("Slow?", { session, signal: leaving.signal }).catch(() => null);
    await vi.waitFor(() => expect(upstream.calls).toHaveLength(1));
    leaving.abort();
    await asking;
    await vi.waitFor(() => expect([...stage.counters.turns()]).toContainEqual(["client_left", 1]));
    expect(upstream.calls[0]?.closed).toBe(true);
    expect(await stage.history(session)).toEqual(["user: Slow?"]);
  });
});

describe("stopping a turn", () => {
  test("ends its stream in order, keeps the partial response, and admits the next turn", async () => {
    const { answer, far, session } = await halfSaid();
    expect(await (await stop(session)).json()).toEqual({ stopped: true });
    const events = await answer.end();
    expect(far.closed).toBe(true);
    expect(events.at(-1)).toBe("[DONE]");
    expect(responsesOrderProblems(events.slice(0, -1))).toEqual([]);
    expect(events.at(-2)).toMatchObject({
      type: "response.incomplete",
      response: { status: "incomplete", metadata: { session_id: session, ended_by: "stop" } },
    });
    expect(await stage.history(session)).toEqual(HALF);
    expect(await (await stop(session)).json()).toEqual({ stopped: false });
    expect([...stage.counters.turns()]).toEqual([["stopped", 1]]);
  });

  test("ends the stream with a finish and [DONE] in the chat dialect", async () => {
    const { answer, session } = await halfSaid({}, { path: "/v1/chat/completions", body: { stream: true } });
    await stop(session);
    const events = await answer.end();
    expect(events.at(-1)).toBe("[DONE]");
    expect(events.at(-2)).toMatchObject({ choices: [{ finish_reason: "stop" }] });
    expect(await stage.history(session)).toEqual(HALF);
  });

  test("before its first word returns an empty, finished stream", async () => {
    stage = new ChatStage();
    await stage.openChat();
    const upstream = stage.place("a");
    const { session } = await stage.say("/new");
    const asking = stage.say("Slow?", { session });
    await vi.waitFor(() => expect(upstream.calls).toHaveLength(1));
    await stop(session);
    const told = await asking;
    expect(told.status).toBe(200);
    expect(responsesOrderProblems(told.events.slice(0, -1))).toEqual([]);
    expect(await stage.history(session)).toEqual(["user: Slow?"]);
  });

  test("returns the partial response if no stream was requested", async () => {
    stage = new ChatStage();
    await stage.openChat();
    const upstream = stage.place("a", (far) => {
      begin(far);
      far.write(wordChunk("Half"));
    });
    const { session } = await stage.say("/new");
    const asking = stage.say("Go on.", { session, body: { stream: false } });
    await vi.waitFor(() => expect(upstream.calls).toHaveLength(1));
    await vi.waitFor(async () => {
      expect(await stage.store?.db.selectFrom("chat_turn").select("partial").execute()).not.toEqual([
        { partial: null },
      ]);
    });
    await stop(session);
    const told = await asking;
    expect(told.events[0]).toMatchObject({ status: "incomplete", output: [{ content: [{ text: "Half" }] }] });
  });

  test("works after its caller has disconnected and left it running", async () => {
    const { answer, far, session } = await halfSaid({ onLeave: "continue" });
    await answer.leave();
    await stop(session);
    await vi.waitFor(async () => expect(await stage.history(session)).toEqual(HALF));
    expect(far.closed).toBe(true);
  });

  test("of another user returns 404", async () => {
    const { session, answer } = await halfSaid();
    const response = await stage.ask(`/v1/chat/sessions/${session}:stop`, {}, { user: "usr_2" });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { code: "session_not_found" } });
    await answer.leave();
  });
});

describe("an upstream that breaks off", () => {
  const breaks: Record<string, (far: ScriptedUpstream["calls"][number]) => void> = {
    "by closing the connection": (far) => far.cut(),
    "in the middle of an event": (far) => {
      far.write('data: {"id":"c","choi');
      far.cut();
    },
    "with a clean but premature end": (far) => far.end(),
    "with an error": (far) => {
      far.write('data: {"error":{"message":"Out of memory.","code":"oom"}}\n\n');
      far.end();
    },
  };

  test.each(Object.keys(breaks))(
    "%s: reports a failure, keeps the partial response, and is replaced when the question is repeated",
    async (how) => {
      const { answer, far, session } = await halfSaid();
      breaks[how]?.(far);
      const events = await answer.end();
      expect(responsesOrderProblems(events)).toEqual([]);
      expect(events.at(-1)).toMatchObject({ type: "response.failed" });
      expect(await stage.history(session)).toEqual(HALF);
      stage.candidates = [];
      stage.place("b", saying("All of it."));
      await stage.say("Go on.", { session });
      expect(await stage.history(session)).toEqual(["user: Go on.", "assistant: All of it."]);
    },
  );
});

test("a partial response is stored while the response continues", async () => {
  const { answer, far } = await halfSaid();
  const partial = async (): Promise<string> =>
    JSON.stringify(await stage.store?.db.selectFrom("chat_turn").select("partial").execute());
  await vi.waitFor(async () => expect(await partial()).toContain("Half said"));
  far.write(wordChunk(" and more"));
  await vi.waitFor(async () => expect(await partial()).toContain("Half said and more"));
  finish(far);
  await answer.end();
});

test("a server shutdown keeps partial responses, and tells their callers", async () => {
  const { answer, session } = await halfSaid();
  await stage.host?.drain(0);
  await stage.turns?.close();
  const events = await answer.end();
  expect(events.at(-1)).toMatchObject({ type: "response.failed" });
  expect(await stage.history(session)).toEqual(HALF);
});

test("a caller that does not read slows the model, and is disconnected after the idle time", async () => {
  stage = new ChatStage();
  await stage.openChat({ host: { limits: { idleMs: 60_000, sweepMs: 10 } } });
  const upstream = stage.place("a", begin);
  const { session } = await stage.say("/new");
  const socket = connect(Number(new URL(stage.platformUrl).port), "127.0.0.1");
  socket.pause();
  const body = JSON.stringify({ messages: [{ role: "user", content: "Much." }] });
  const head = ["authorization: Bearer usr_1", `service-project-id: ${PROJECT}`, `service-session-id: ${session}`];
  const fields = ["host: x", "content-type: application/json", `content-length: ${Buffer.byteLength(body)}`, ...head];
  socket.write(["POST /v1/chat/responses HTTP/1.1", ...fields, "", body].join("\r\n"));
  await vi.waitFor(() => expect(upstream.calls).toHaveLength(1));
  const [far] = upstream.calls;
  const word = "x".repeat(64 * 1024);
  for (let count = 0; count < 500; count++) far?.write(wordChunk(word));
  const relayed = stage.host?.counters.relayedBytes ?? 0;
  expect(relayed).toBeGreaterThan(0);
  expect(relayed).toBeLessThan(16 * 1024 * 1024);
  await vi.waitFor(() => {
    stage.clock.advance(60_000);
    expect(far?.closed).toBe(true);
  });
  await vi.waitFor(() => expect([...stage.counters.turns()]).toContainEqual(["client_left", 1]));
  socket.destroy();
});
