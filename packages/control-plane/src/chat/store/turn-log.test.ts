import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { STORES } from "../../testing.fixture.ts";
import { buildInput } from "../items/history-input.ts";
import { ANN, ANSWERED, asks, BROKEN, ChatLogStage, calls, gives, LEFT, says, scopeOf } from "./chat-log.fixture.ts";

describe.each(STORES)("the turn log on $name", ({ open }) => {
  let stage: ChatLogStage;
  beforeEach(async () => {
    stage = await ChatLogStage.open(open);
  });
  afterEach(() => stage.close());

  test("stores two items a turn, in order and on every read (hermes-agent#95137, mastra#4350, dify#2726)", async () => {
    const id = await stage.turn(null, "one");
    for (const text of ["two", "three", "four"]) await stage.turn(id, text);
    const said = ["one", "two", "three", "four"].flatMap((text) => [`user: ${text}`, "assistant: yes"]);
    expect(await stage.said(id)).toEqual(said);
    expect(await stage.chat.chatSessions.require(ANN, id)).toMatchObject({ messageCount: 8, itemCount: 8 });
  });

  test("stores the question before anything is answered (eneo#349)", async () => {
    const { sessionId } = await stage.begin(null, asks("hello"));
    expect(await stage.said(sessionId)).toEqual(["user: hello"]);
  });

  test("returns flushed items while the turn runs, and once after its end (open-webui#29596)", async () => {
    const { sessionId, turnId } = await stage.begin(null, asks("hello"));
    await stage.chat.turnLog.flush(turnId, [says("It", { id: "msg_a", status: "incomplete" })]);
    expect(await stage.said(sessionId)).toEqual(["user: hello", "assistant: It"]);
    const page = { after: null, before: null, order: "desc", limit: 1 } as const;
    const running = await stage.chat.chatHistory.messages(ANN, sessionId, page);
    expect(running.more).toBe(true);
    expect(running.items[0]).toMatchObject({ id: "msg_a", turnId, status: "in_progress", position: 2 });
    await stage.chat.turnLog.finish(turnId, { ...ANSWERED, items: [says("It is so", { id: "msg_a" })] });
    const stored = await stage.chat.chatHistory.messages(ANN, sessionId, page);
    expect(stored.items[0]).toMatchObject({ id: "msg_a", turnId, status: "completed", position: 2 });
    expect(await stage.said(sessionId)).toEqual(["user: hello", "assistant: It is so"]);
  });

  test("ends a turn once, and accepts nothing for it afterwards", async () => {
    const { sessionId, turnId } = await stage.begin(null, asks("hello"));
    await stage.chat.turnLog.finish(turnId, { ...ANSWERED, items: [says("yes")] });
    await stage.chat.turnLog.flush(turnId, [says("late")]);
    await stage.chat.turnLog.finish(turnId, { ...ANSWERED, items: [says("again")] });
    expect(await stage.said(sessionId)).toEqual(["user: hello", "assistant: yes"]);
  });

  test("keeps what a crashed process had flushed, in a session that can continue (chatbot#1060, ragflow#13128)", async () => {
    const { sessionId, turnId } = await stage.begin(null, asks("hello"));
    await stage.begin(null, asks("nobody answered"));
    await stage.chat.turnLog.flush(turnId, [says("half", { status: "in_progress" })]);
    const { turnLog } = stage.restarted(2);
    expect(await turnLog.closeLost()).toBe(2);
    expect(await turnLog.closeLost()).toBe(0);
    expect(await stage.said(sessionId)).toEqual(["user: hello", "assistant: half"]);
    await stage.turn(sessionId, "go on");
    expect(await stage.said(sessionId)).toEqual(["user: hello", "assistant: half", "user: go on", "assistant: yes"]);
  });

  test("does not wait for an orphaned turn, whose start was stored but never confirmed to its process", async () => {
    const { turnLog } = stage.restarted(2);
    const call = {
      dialect: "responses",
      model: "a/b",
      contextTokens: 9000,
      requestHash: "h",
      idempotencyKey: "k",
    } as const;
    const lost = await turnLog.begin(ANN, null, { turn: asks("hello"), ...call });
    const again = await stage.begin(lost.sessionId, asks("hello"), { idempotencyKey: "k" });
    expect(again.sessionId).toBe(lost.sessionId);
    expect(await stage.said(lost.sessionId)).toEqual(["user: hello"]);
    await stage.chat.turnLog.finish(again.turnId, { ...ANSWERED, items: [says("yes")] });
    const other = await turnLog.begin(ANN, lost.sessionId, { turn: asks("two"), ...call, idempotencyKey: null });
    if (other.replay !== null) throw new Error("replayed");
    await turnLog.flush(other.turnId, [says("half")]);
    await stage.turn(lost.sessionId, "three");
    expect(await stage.said(lost.sessionId)).toEqual([
      "user: hello",
      "assistant: yes",
      "user: two",
      "assistant: half",
      "user: three",
      "assistant: yes",
    ]);
  });

  test("asks a second turn to wait while one is running, and stores nothing of it (open-design#5490)", async () => {
    const { sessionId } = await stage.begin(null, asks("hello"));
    const second = stage.begin(sessionId, asks("me too"));
    await expect(second).rejects.toMatchObject({ code: "session_busy", retryAfterSeconds: 2 });
    expect(await stage.said(sessionId)).toEqual(["user: hello"]);
  });

  test("runs one of two turns that begin in a session at the same time", async () => {
    const id = await stage.turn(null, "hello");
    const both = await Promise.allSettled([stage.begin(id, asks("a")), stage.begin(id, asks("b"))]);
    expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  });

  test("makes a session accessible only to its user in its project", async () => {
    const id = await stage.turn(null, "hello");
    for (const scope of [scopeOf("prj_1", "usr_ben"), scopeOf("prj_2", "usr_ann")]) {
      const found = stage.begin(id, asks("mine?"), { scope });
      await expect(found).rejects.toMatchObject({ code: "session_not_found" });
      await expect(stage.chat.turnLog.lastTurn(scope, id)).rejects.toMatchObject({ code: "session_not_found" });
      await expect(stage.chat.chatHistory.history(scope, id)).rejects.toMatchObject({ code: "session_not_found" });
    }
    await expect(stage.begin("ses_x' or 1=1 --", asks("mine?"))).rejects.toMatchObject({ code: "session_not_found" });
  });

  test("keeps the response's IDs as they were streamed, and replaces repeated ones", async () => {
    const items = [says("a", { id: "msg_0" }), says("b", { id: "msg_0" }), says("c", { id: "x".repeat(500) })];
    const id = await stage.turn(null, "one", { items });
    await stage.turn(id, "two", { items });
    const page = { after: null, before: null, order: "asc", limit: 100 } as const;
    const ids = (await stage.chat.chatHistory.messages(ANN, id, page)).items.map((item) => item.id);
    expect(ids[1]).toBe("msg_0");
    expect(new Set(ids).size).toBe(8);
    expect(ids.filter((own) => own.length > 40)).toEqual([]);
  });

  test("returns hostile text unchanged", async () => {
    const text = "'; drop table chat_item; -- <script>\u0000\u{1F468}‍\u{1F469}‍\u{1F467} \ud800 עברית %_!".padEnd(
      10_000,
      "ä",
    );
    const id = await stage.turn(null, text, { items: [says(text)] });
    expect(await stage.said(id)).toEqual([`user: ${text}`, `assistant: ${text}`]);
  });

  test("records usage with the last item of a response", async () => {
    const usage = { inputTokens: 7, cachedInputTokens: 0, outputTokens: 3, reasoningTokens: 0 };
    const id = await stage.turn(null, "one", { items: [calls("c1"), says("b")], usage });
    const page = { after: null, before: null, order: "asc", limit: 100 } as const;
    const { items } = await stage.chat.chatHistory.messages(ANN, id, page);
    expect(items.map((item) => item.usage)).toEqual([null, null, usage]);
  });

  describe("asking again", () => {
    test("supersedes what got no response, however long ago (open-design PR #509, sourcelens#207)", async () => {
      const id = await stage.turn(null, "hello", { ...BROKEN, items: [] });
      stage.clock.advance(3_600_000);
      const { history } = await stage.begin(id, asks("hello"));
      expect(history).toEqual({ items: [], olderItems: 0 });
      expect(await stage.said(id)).toEqual(["user: hello"]);
      expect(await stage.chat.chatSessions.require(ANN, id)).toMatchObject({ messageCount: 1, itemCount: 1 });
    });

    test("many times leaves one question", async () => {
      const id = await stage.turn(null, "hello", { ...BROKEN, items: [] });
      for (let attempt = 0; attempt < 5; attempt++) await stage.turn(id, "hello", { ...BROKEN, items: [says("ha")] });
      await stage.turn(id, "hello");
      expect(await stage.said(id)).toEqual(["user: hello", "assistant: yes"]);
    });

    test("supersedes a turn whose caller disconnected within the last minute, and follows an older one", async () => {
      const id = await stage.turn(null, "hello", { ...LEFT, items: [says("half")] });
      stage.clock.advance(60_000);
      await stage.turn(id, "hello", { ...LEFT, items: [says("other half")] });
      expect(await stage.said(id)).toEqual(["user: hello", "assistant: other half"]);
      stage.clock.advance(60_001);
      await stage.turn(id, "hello");
      expect(await stage.said(id)).toHaveLength(4);
    });

    test("follows a turn that was answered, or stopped by a user", async () => {
      const id = await stage.turn(null, "go on");
      await stage.turn(id, "go on", { status: "incomplete", why: "stopped", items: [says("half")] });
      await stage.turn(id, "go on");
      expect(await stage.said(id)).toHaveLength(6);
    });

    test("with another question never supersedes", async () => {
      const id = await stage.turn(null, "hello", { ...BROKEN, items: [] });
      await stage.turn(id, "hello!");
      expect(await stage.said(id)).toEqual(["user: hello", "user: hello!", "assistant: yes"]);
    });

    test("keeps what was superseded readable in the whole session", async () => {
      const id = await stage.turn(null, "hello", { ...LEFT, items: [says("half")] });
      await stage.turn(id, "hello");
      const { items } = await stage.chat.chatHistory.whole(ANN, id, { withSuperseded: true });
      const statuses: string[] = [];
      for await (const page of items) statuses.push(...page.map(({ status }) => status));
      expect(statuses).toEqual(["superseded", "superseded", "completed", "completed"]);
    });

    test("with the last turn replaces it, even if it was answered", async () => {
      const id = await stage.turn(await stage.turn(null, "one"), "two");
      const last = await stage.chat.turnLog.lastTurn(ANN, id);
      expect(last).toMatchObject({ turn: asks("two"), model: "node/model", dialect: "responses" });
      if (last === null) throw new Error("no last turn");
      const { turnId, history } = await stage.begin(id, last.turn, { replaces: last.turnId });
      expect(history.items).toHaveLength(2);
      await stage.chat.turnLog.finish(turnId, { ...ANSWERED, items: [says("no")] });
      expect(await stage.said(id)).toEqual(["user: one", "assistant: yes", "user: two", "assistant: no"]);
      const again = stage.begin(id, last.turn, { replaces: last.turnId });
      await expect(again).rejects.toMatchObject({ code: "session_busy" });
    });

    test("finds no last turn in a new session", async () => {
      const { id } = await stage.chat.chatSessions.open(ANN, { model: null, openedFrom: null });
      expect(await stage.chat.turnLog.lastTurn(ANN, id)).toBeNull();
    });
  });

  describe("tool calls", () => {
    const pair = [says("let me see"), calls("c1"), calls("c2")];

    test("continue with outputs instead of a question, and every round is stored (open-webui#27363)", async () => {
      const id = await stage.turn(null, "weather?", { items: pair });
      await stage.turn(id, gives(["c1", "sun"], ["c2", "rain"]), { items: [calls("c3")] });
      const { history, items } = await stage.begin(id, gives(["c3", "snow"]));
      const { input } = buildInput(history, { kind: "outputs", items, instructions: [] }, { contextTokens: 9000 });
      expect(input.map(({ type, call_id }) => call_id ?? type)).toEqual([
        "message",
        "message",
        "c1",
        "c2",
        "c1",
        "c2",
        "c3",
        "c3",
      ]);
    });

    test("do not store outputs again that were given before (deepagents PR #6321)", async () => {
      const id = await stage.turn(null, "weather?", { items: pair });
      await stage.turn(id, gives(["c1", "sun"]), { ...BROKEN, items: [] });
      const { items } = await stage.begin(id, gives(["c1", "sun"], ["c2", "rain"]));
      expect(items).toMatchObject([{ call_id: "c2" }]);
    });

    test("supersede outputs that got no response when these are repeated", async () => {
      const id = await stage.turn(null, "weather?", { items: pair });
      await stage.turn(id, gives(["c1", "a"], ["c2", "b"]), { ...LEFT, items: [says("ha")] });
      await stage.turn(id, gives(["c1", "a"], ["c2", "b"]));
      expect(await stage.chat.chatSessions.require(ANN, id)).toMatchObject({ itemCount: 7, messageCount: 3 });
    });

    test("reject outputs without an open call, and store nothing of them", async () => {
      const id = await stage.turn(null, "weather?", { items: pair });
      const refusal = { code: "invalid_request", param: "messages" };
      await expect(stage.begin(id, gives(["c9", "?"]))).rejects.toMatchObject(refusal);
      await stage.turn(id, gives(["c1", "a"], ["c2", "b"]));
      await expect(stage.begin(id, gives(["c1", "late"]))).rejects.toMatchObject(refusal);
      await expect(stage.begin(null, gives(["c1", "?"]))).rejects.toMatchObject(refusal);
      const { sessions } = await stage.chat.chatSessions.list(ANN, { query: "", after: null, limit: 10 });
      expect(sessions).toHaveLength(1);
    });

    test("determine the type of their outputs", async () => {
      const custom = { type: "custom_tool_call", call_id: "c1", name: "patch", input: "x" };
      const id = await stage.turn(null, "patch it", { items: [custom] });
      const { items } = await stage.begin(id, gives(["c1", "done"]));
      expect(items).toEqual([{ type: "custom_tool_call_output", call_id: "c1", output: "done" }]);
    });
  });

  describe("an Idempotency-Key", () => {
    const response = { id: "resp_1", output: [] };
    const call = { idempotencyKey: "k", requestHash: "h" };

    test("replays a response for a day, without opening another session", async () => {
      const { turnId, sessionId } = await stage.begin(null, asks("hello"), call);
      await stage.chat.turnLog.finish(turnId, { ...ANSWERED, items: [says("yes")], response });
      const stored = { sessionId, turnId, dialect: "responses", response };
      expect(await stage.chat.turnLog.find(ANN, call)).toEqual(stored);
      const begun = { turn: asks("hello"), dialect: "responses", model: "m", contextTokens: 9000, ...call } as const;
      expect(await stage.chat.turnLog.begin(ANN, null, begun)).toEqual({ replay: stored, sessionId });
      expect(await stage.said(sessionId)).toHaveLength(2);
      stage.clock.advance(24 * 3_600_000);
      expect(await stage.chat.turnLog.find(ANN, call)).toBeNull();
      expect(await stage.begin(sessionId, asks("hello"), call)).toMatchObject({ sessionId });
    });

    test("is separate for another caller and project", async () => {
      const { turnId } = await stage.begin(null, asks("hello"), call);
      await stage.chat.turnLog.finish(turnId, { ...ANSWERED, items: [says("yes")], response });
      for (const scope of [scopeOf("prj_1", "usr_ben"), scopeOf("prj_2", "usr_ann")]) {
        expect(await stage.chat.turnLog.find(scope, call)).toBeNull();
        await stage.begin(null, asks("hello"), { ...call, scope });
      }
    });

    test("is rejected for another call, and while its call is running", async () => {
      const { turnId, sessionId } = await stage.begin(null, asks("hello"), call);
      await expect(stage.chat.turnLog.find(ANN, call)).rejects.toMatchObject({
        code: "session_busy",
        retryAfterSeconds: 2,
      });
      await expect(stage.begin(null, asks("hello"), call)).rejects.toMatchObject({ code: "session_busy" });
      await stage.chat.turnLog.finish(turnId, { ...ANSWERED, items: [says("yes")], response });
      const other = { ...call, requestHash: "other" };
      await expect(stage.chat.turnLog.find(ANN, other)).rejects.toMatchObject({ code: "idempotency_mismatch" });
      await expect(stage.begin(sessionId, asks("bye"), other)).rejects.toMatchObject({ code: "idempotency_mismatch" });
    });

    test("of a failed call asks again in the session it opened, replacing the first question", async () => {
      const { turnId, sessionId } = await stage.begin(null, asks("hello"), call);
      await stage.chat.turnLog.finish(turnId, { ...LEFT, items: [says("half")] });
      stage.clock.advance(3_600_000);
      expect(await stage.chat.turnLog.find(ANN, call)).toBeNull();
      const again = await stage.begin(null, asks("hello"), call);
      expect(again.sessionId).toBe(sessionId);
      expect(await stage.said(sessionId)).toEqual(["user: hello"]);
    });

    test("of two simultaneous calls lets one run, and opens one session", async () => {
      const begin = (): Promise<unknown> => stage.begin(null, asks("hello"), call);
      const both = await Promise.allSettled([begin(), begin(), begin()]);
      expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected", "rejected"]);
      const refused = both.find(({ status }) => status === "rejected");
      expect(refused).toMatchObject({ reason: { code: "session_busy" } });
      const { sessions } = await stage.chat.chatSessions.list(ANN, { query: "", after: null, limit: 10 });
      expect(sessions).toHaveLength(1);
    });
  });
});
