import { responsesOrderProblems } from "@fairlead/dialects/testing/responses-order";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { bodyOf, ChatStage, saying } from "../chat-stage.fixture.ts";

let stage: ChatStage;
beforeEach(async () => {
  stage = new ChatStage();
  await stage.openChat();
});
afterEach(() => stage.closeChat());

const typesIn = (events: readonly unknown[]): unknown[] =>
  events.map((event) => (event as { type?: string }).type ?? event);

describe("POST /v1/chat/responses", () => {
  test("opens a session, streams the response in order, and names the session in header and metadata", async () => {
    stage.place("a", saying("Hel", "lo"));
    const told = await stage.say("Hi");
    expect(told.status).toBe(200);
    expect(told.headers.get("content-type")).toMatch(/^text\/event-stream/);
    expect(told.headers.get("x-request-id")).toMatch(/^req_/);
    expect(told.session).toMatch(/^ses_/);
    expect(told.events.at(-1)).toBe("[DONE]");
    expect(responsesOrderProblems(told.events.slice(0, -1))).toEqual([]);
    expect(told.events.at(-2)).toMatchObject({
      type: "response.completed",
      response: {
        model: "a/model",
        metadata: { session_id: told.session },
        output: [{ content: [{ text: "Hello" }] }],
      },
    });
  });

  test("gives the model the earlier turns, and has everything stored when the response ends", async () => {
    const upstream = stage.place("a", saying("Your name is Ada."));
    const first = await stage.say("I am Ada.");
    const second = await stage.say("Who am I?", { session: first.session });
    expect(second.session).toBe(first.session);
    expect(await bodyOf(upstream, 1)).toMatchObject({
      messages: [
        { role: "user", content: "I am Ada." },
        { role: "assistant", content: "Your name is Ada." },
        { role: "user", content: "Who am I?" },
      ],
    });
  });

  test("ignores earlier messages in the body; system messages apply to this turn only", async () => {
    const upstream = stage.place("a", saying("Yes."));
    const messages = [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Forged" },
      { role: "assistant", content: "Forged too" },
      { role: "user", content: "Hello?" },
    ];
    const first = await stage.say("", { body: { messages } });
    await stage.say("Again?", { session: first.session });
    const [one, two] = [await bodyOf(upstream, 0), await bodyOf(upstream, 1)];
    expect(one["messages"]).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hello?" },
    ]);
    expect(JSON.stringify(two)).not.toMatch(/Be brief|Forged/);
  });

  test("passes other fields on as they were sent", async () => {
    const upstream = stage.place("a", saying("Yes."), { protocols: ["responses", "chat"] });
    await stage.say("Hi", { body: { temperature: 0.25, top_p: 0.5, vendor_field: { x: [1] }, metadata: { a: "b" } } });
    expect(await bodyOf(upstream, 0)).toMatchObject({
      temperature: 0.25,
      top_p: 0.5,
      vendor_field: { x: [1] },
      metadata: { a: "b" },
      stream: true,
    });
  });

  test("reads `input` if `messages` is absent", async () => {
    const upstream = stage.place("a", saying("Yes."));
    const response = await stage.ask("/v1/chat/responses", { input: "Plain text" });
    await response.text();
    expect(await bodyOf(upstream, 0)).toMatchObject({ messages: [{ role: "user", content: "Plain text" }] });
  });

  test("returns the finished JSON object for `stream: false`", async () => {
    stage.place("a", saying("Hel", "lo"));
    const told = await stage.say("Hi", { body: { stream: false } });
    expect(told.headers.get("content-type")).toMatch(/^application\/json/);
    expect(told.events[0]).toMatchObject({
      object: "response",
      status: "completed",
      output: [{ type: "message", content: [{ text: "Hello" }] }],
      metadata: { session_id: told.session },
    });
  });

  test("uses the model of the body, else the session's last, else the default", async () => {
    const upstream = stage.place("a", saying("Yes."));
    const first = await stage.say("1");
    await stage.say("2", { session: first.session, body: { model: "other/model" } });
    stage.defaultModel = null;
    const third = await stage.say("3", { session: first.session });
    expect(third.status).toBe(200);
    expect(upstream.calls).toHaveLength(3);
    expect((await stage.say("4")).events[0]).toMatchObject({ error: { code: "not_configured", param: "model" } });
  });
});

describe("POST /v1/chat/completions", () => {
  test("continues the same session in its own dialect, and streams if requested", async () => {
    const upstream = stage.place("a", saying("Ada", "."));
    const first = await stage.say("I am Ada.");
    const told = await stage.sayChat("Who am I?", { session: first.session, body: { stream: true } });
    expect(told.session).toBe(first.session);
    expect(told.events.at(-1)).toBe("[DONE]");
    const text = told.events
      .slice(0, -1)
      .map((chunk) => (chunk as Chunk).choices[0]?.delta.content ?? "")
      .join("");
    expect(text).toBe("Ada.");
    expect(told.text).not.toContain('"total_tokens"');
    expect(await bodyOf(upstream, 1)).toMatchObject({
      messages: [{ content: "I am Ada." }, { role: "assistant", content: "Ada." }, { content: "Who am I?" }],
      stream_options: { include_usage: true },
    });
  });

  test("returns JSON if no stream is requested, and stores the response", async () => {
    const answer = {
      id: "c",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [{ index: 0, message: { role: "assistant", content: "Whole." }, finish_reason: "stop" }],
    };
    const upstream = stage.place("a", (far) => {
      far.respond(200, { "content-type": "application/json" });
      far.write(JSON.stringify(answer));
      far.end();
    });
    const told = await stage.sayChat("Hi");
    expect(told.events[0]).toEqual(answer);
    await stage.sayChat("And?", { session: told.session });
    expect(await bodyOf(upstream, 1)).toMatchObject({ messages: [{}, { role: "assistant", content: "Whole." }, {}] });
  });

  test("accepts tool outputs in either dialect, whichever made the calls", async () => {
    const call = { index: 0, id: "call_1", type: "function", function: { name: "look", arguments: "{}" } };
    let turn = 0;
    const upstream = stage.place("a", (far) => {
      turn += 1;
      if (turn > 1) return saying("Sunny.")(far);
      far.respond(200, { "content-type": "text/event-stream" });
      far.write(
        `data: ${JSON.stringify({ id: "c", created: 1, model: "m", choices: [{ index: 0, delta: { role: "assistant", tool_calls: [call] } }] })}\n\n`,
      );
      far.write(
        `data: ${JSON.stringify({ id: "c", created: 1, model: "m", choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] })}\n\n`,
      );
      far.write("data: [DONE]\n\n");
      far.end();
    });
    const first = await stage.sayChat("Weather?", { body: { stream: true } });
    const output = { type: "function_call_output", call_id: "call_1", output: "22 °C" };
    const second = await stage.say("", { session: first.session, body: { messages: [output] } });
    expect(second.status, second.text).toBe(200);
    expect(await bodyOf(upstream, 1)).toMatchObject({
      messages: [
        { role: "user", content: "Weather?" },
        { role: "assistant", tool_calls: [{ id: "call_1", function: { name: "look", arguments: "{}" } }] },
        { role: "tool", tool_call_id: "call_1", content: "22 °C" },
      ],
    });
  });
});

describe("/new", () => {
  test.each(["/new", "  /new\n", [{ type: "text", text: "/new" }]])(
    "as %j opens a session without calling a model",
    async (content) => {
      const upstream = stage.place("a", saying("Never."));
      const told = await stage.say("", { body: { messages: [{ role: "user", content }] } });
      expect(told.status).toBe(200);
      expect(told.session).toMatch(/^ses_/);
      expect(typesIn(told.events)).toHaveLength(10);
      expect(upstream.calls).toHaveLength(0);
      const next = await stage.say("Hi", { session: told.session });
      expect(next.session).toBe(told.session);
      expect(await bodyOf(upstream, 0)).toMatchObject({ messages: [{ role: "user", content: "Hi" }] });
    },
  );

  test("opens another session than the one it is sent in, with an event stream even if none is requested", async () => {
    stage.place("a", saying("Hello."));
    const first = await stage.say("Hi");
    for (const say of [stage.say.bind(stage), stage.sayChat.bind(stage)]) {
      const told = await say("/new", { session: first.session, body: { stream: false } });
      expect(told.headers.get("content-type")).toMatch(/^text\/event-stream/);
      expect(told.events.at(-1)).toBe("[DONE]");
      expect(told.session).not.toBe(first.session);
    }
  });

  test("repeated within ten seconds returns the session that it opened, as long as that is empty", async () => {
    stage.place("a", saying("Hello."));
    const first = await stage.say("/new");
    expect((await stage.say("/new")).session).toBe(first.session);
    await stage.say("Hi", { session: first.session });
    const second = await stage.say("/new");
    expect(second.session).not.toBe(first.session);
    stage.clock.advance(10_001);
    expect((await stage.say("/new")).session).not.toBe(second.session);
  });

  test("within a longer text is ordinary text", async () => {
    const upstream = stage.place("a", saying("Ok."));
    await stage.say("What does /new do?");
    expect(upstream.calls).toHaveLength(1);
  });
});

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly content?: string } }[];
}
