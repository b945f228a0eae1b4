import type { ScriptedCall } from "@fairlead/inference/testing/scripted-upstream";
import { DomainError } from "@fairlead/protocol/errors";
import { afterEach, describe, expect, test, vi } from "vitest";
import { STORES } from "../../testing.fixture.ts";
import { ChatStage, saying } from "../chat-stage.fixture.ts";
import type { TurnLog } from "../store/turn-log.ts";
import type { TurnServiceDeps } from "./turn-service.ts";

/** Turns, and a store that is away when they need it. */

let stage: ChatStage;
afterEach(() => stage.closeChat());

type Log = TurnServiceDeps["turns"];

/** The log of a store that goes away and comes back. */
class AwayLog implements Log {
  readonly #log: TurnLog;
  away = new Set<keyof Log>();

  constructor(log: TurnLog) {
    this.#log = log;
  }

  readonly #reach = (method: keyof Log): TurnLog => {
    if (this.away.has(method)) throw new DomainError("unavailable", "The store cannot be used just now.");
    return this.#log;
  };
  find = async (...args: Parameters<Log["find"]>) => await this.#reach("find").find(...args);
  begin = async (...args: Parameters<Log["begin"]>) => await this.#reach("begin").begin(...args);
  flush = async (...args: Parameters<Log["flush"]>) => await this.#reach("flush").flush(...args);
  finish = async (...args: Parameters<Log["finish"]>) => await this.#reach("finish").finish(...args);
  lastTurn = async (...args: Parameters<Log["lastTurn"]>) => await this.#reach("lastTurn").lastTurn(...args);
}

async function open(): Promise<AwayLog> {
  stage = new ChatStage();
  let log: AwayLog | undefined;
  await stage.openChat({ wrap: (real) => (log = new AwayLog(real)) });
  if (log === undefined) throw new Error("no log");
  return log;
}

describe("an unreachable store", () => {
  test("before a turn begins returns 503, and no model is called", async () => {
    const log = await open();
    const upstream = stage.place("a", saying("Hi."));
    log.away.add("begin");
    const told = await stage.say("Hi");
    expect(told.status).toBe(503);
    expect(told.events[0]).toMatchObject({ error: { code: "unavailable" } });
    expect(upstream.calls).toHaveLength(0);
  });

  test.each([
    ["/v1/chat/responses", "response.failed"],
    ["/v1/chat/completions", '"error"'],
  ])(
    "at the commit: %s reports a failure and no end; the question is stored once when it is asked again later",
    async (path, failure) => {
      const log = await open();
      stage.place("a", saying("Said."));
      const { session } = await stage.say("/new");
      log.away.add("finish");
      const answer = await stage.sayOpen("Hi", { session, path, body: { stream: true } });
      await answer.end();
      expect(answer.text).toContain(failure);
      expect(answer.text).not.toMatch(/response\.completed|\[DONE\]/);
      log.away.clear();
      await vi.waitFor(async () => expect(await stage.history(session)).toHaveLength(2), 2000);
      await stage.say("Hi", { session });
      expect(await stage.history(session)).toEqual(["user: Hi", "assistant: Said."]);
    },
  );

  test("at the commit of a response without a stream returns 503", async () => {
    const log = await open();
    stage.place("a", saying("Said."));
    log.away.add("finish");
    expect((await stage.say("Hi", { body: { stream: false } })).status).toBe(503);
  });

  test("in the middle of a response costs no more than a crash would", async () => {
    const log = await open();
    stage.place("a", saying("Said."));
    log.away.add("flush");
    const told = await stage.say("Hi");
    expect(told.text).toContain("response.completed");
    expect(await stage.history(told.session)).toEqual(["user: Hi", "assistant: Said."]);
  });
});

test("tool outputs that no call requested are rejected, and are not a turn", async () => {
  await open();
  const upstream = stage.place("a", saying("Hi."));
  const { session } = await stage.say("Hi");
  const output = { type: "function_call_output", call_id: "call_forged", output: "x" };
  const told = await stage.say("", { session, body: { messages: [output] } });
  expect(told.status).toBe(400);
  expect(upstream.calls).toHaveLength(1);
});

test("content that a dialect cannot express is rejected, and the session can continue", async () => {
  await open();
  stage.place("a", saying("Hi."));
  const file = { type: "input_file", file_url: "https://example.org/a.pdf" };
  const content = [{ type: "input_text", text: "Read this." }, file];
  const told = await stage.sayChat("", { body: { messages: [{ role: "user", content }] } });
  expect(told.status).toBe(400);
  const next = await stage.say("Never mind.", { session: told.session });
  expect(next.text).toContain("response.completed");
  expect(await stage.history(told.session)).toEqual(["user: Never mind.", "assistant: Hi."]);
});

test("a request that the upstream rejects as invalid does not spoil the session", async () => {
  await open();
  const refusing = (far: ScriptedCall): void => {
    far.respond(400, { "content-type": "application/json" });
    far.write('{"error":{"message":"No such image.","code":"bad_image"}}');
    far.end();
  };
  let play = saying("Hi.");
  stage.place("a", (far) => play(far));
  const { session } = await stage.say("One");
  play = refusing;
  expect((await stage.say("Bad", { session })).status).toBe(400);
  play = saying("Fine.");
  await stage.say("Two", { session });
  expect(await stage.history(session)).toEqual(["user: One", "assistant: Hi.", "user: Two", "assistant: Fine."]);
});

test("history that does not fit is cut only for the model, and the caller is told how much", async () => {
  await open();
  const upstream = stage.place("a", saying("x".repeat(400)), { contextTokens: 400 });
  const { session } = await stage.say("first");
  for (const text of ["second", "third", "fourth"]) await stage.say(text, { session });
  const told = await stage.say("fifth", { session });
  const cut = Number(told.headers.get("x-fairlead-cut-items"));
  expect(cut).toBeGreaterThan(0);
  expect(told.events.at(-2)).toMatchObject({ response: { metadata: { cut_items: String(cut), session_id: session } } });
  const sent = (await upstream.calls.at(-1)?.request)?.body.toString("utf8") ?? "";
  expect(sent).not.toContain("first");
  expect(await stage.history(session)).toHaveLength(10);
});

test.each(STORES)(
  "$name: a session continues from turn to turn, and from one dialect to the other",
  async ({ open: openStore }) => {
    stage = new ChatStage();
    await stage.openChat({ open: openStore });
    stage.place("a", saying("Hi."));
    const { session } = await stage.say("One");
    await stage.sayChat("Two", { session, body: { stream: true } });
    expect(await stage.history(session)).toEqual(["user: One", "assistant: Hi.", "user: Two", "assistant: Hi."]);
  },
);
