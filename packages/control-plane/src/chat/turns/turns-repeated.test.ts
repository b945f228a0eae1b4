import { UPSTREAM_FRAMES } from "@fairlead/inference/relay/bridged.fixture";
import type { ScriptedCall } from "@fairlead/inference/testing/scripted-upstream";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { begin, bodyOf, ChatStage, finish, readTold, saying, wordChunk } from "../chat-stage.fixture.ts";

/** Turns that are asked again: by clients, by people, by name. */

let stage: ChatStage;
beforeEach(async () => {
  stage = new ChatStage();
  await stage.openChat({ host: { limits: { maxAttempts: 1 } } });
});
afterEach(() => stage.closeChat());

const failing = (far: ScriptedCall): void => far.cut();

describe("a first question without a session name", () => {
  test("that got no response continues in the session it opened, however often it is repeated", async () => {
    let play = failing;
    stage.place("a", (far) => play(far));
    const refused = [await stage.say("Hi"), await stage.say("Hi"), await stage.say("Hi")];
    play = saying("Hello.");
    const told = await stage.say("Hi");
    expect(new Set([...refused, told].map(({ session }) => session)).size).toBe(1);
    expect(await stage.history(told.session)).toEqual(["user: Hi", "assistant: Hello."]);
  });

  test("that was answered opens a new session when it is asked again", async () => {
    stage.place("a", saying("Hello."));
    expect((await stage.say("Hi")).session).not.toBe((await stage.say("Hi")).session);
  });

  test("from another user, or with another text, opens a session of its own", async () => {
    stage.place("a", failing);
    const { session } = await stage.say("Hi");
    expect((await stage.say("Hi", { user: "usr_2" })).session).not.toBe(session);
    expect((await stage.say("Ho")).session).not.toBe(session);
    stage.clock.advance(60_001);
    expect((await stage.say("Hi")).session).not.toBe(session);
  });
});

test("a client that retries a 502 duplicates no question and no response", async () => {
  let calls = 0;
  stage.place("a", (far) => (++calls < 3 ? failing(far) : saying("At last.")(far)));
  const { session } = await stage.say("/new");
  for (let attempt = 0; attempt < 3; attempt++) await stage.say("Hi", { session });
  expect(await stage.history(session)).toEqual(["user: Hi", "assistant: At last."]);
});

describe("an Idempotency-Key", () => {
  const key = { "idempotency-key": "k 1" };

  test.each([
    ["chat", "/v1/chat/responses"],
    ["chat", "/v1/chat/completions"],
    ["responses", "/v1/chat/responses"],
    ["responses", "/v1/chat/completions"],
  ] as const)("with a %s upstream on %s stores the model under the name callers use", async (speaks, path) => {
    const frames = UPSTREAM_FRAMES[speaks];
    const play = (far: ScriptedCall): void => {
      begin(far);
      for (const frame of frames) far.write(frame);
      far.end();
    };
    stage.place("a", play, { protocols: [speaks], upstreamId: "acme", kind: "provider", model: "org/large" });
    const body = { model: "alias", messages: [{ role: "user", content: "Hi" }], stream: true };
    const first = await readTold(await stage.ask(path, body, { headers: key }));
    expect(first.status).toBe(200);
    const repeat = await readTold(await stage.ask(path, body, { headers: key, session: first.session }));
    expect(repeat.headers.get("idempotency-replayed")).toBe("true");
    expect(new Set(repeat.text.match(/"model":"[^"]*"/g))).toEqual(new Set(['"model":"acme/org/large"']));
  });

  test.each([
    ["/v1/chat/responses", true],
    ["/v1/chat/responses", false],
    ["/v1/chat/completions", true],
    ["/v1/chat/completions", false],
  ])("on %s (stream: %s) replays the response in the same session, without calling a model", async (path, stream) => {
    const upstream = stage.place("a", (far) =>
      stream || path.endsWith("responses") ? saying("Once.")(far) : whole(far),
    );
    const body = { messages: [{ role: "user", content: "Hi" }], stream };
    const [first, second] = [
      await stage.ask(path, body, { headers: key }),
      await stage.ask(path, body, { headers: key }),
    ];
    expect(await first.text()).toContain("Once.");
    expect(await second.text()).toContain("Once.");
    const type = stream ? "text/event-stream" : "application/json";
    for (const { headers } of [first, second]) expect(headers.get("content-type")?.split(";")[0]).toBe(type);
    expect(second.headers.get("idempotency-replayed")).toBe("true");
    expect(second.headers.get("service-session-id")).toBe(first.headers.get("service-session-id"));
    expect(upstream.calls).toHaveLength(1);
    expect(await stage.history(second.headers.get("service-session-id"))).toEqual(["user: Hi", "assistant: Once."]);
  });

  test("with another body returns 409", async () => {
    stage.place("a", saying("Once."));
    await stage.say("Hi", { headers: key });
    const told = await stage.say("Ho", { headers: key });
    expect(told.status).toBe(409);
    expect(told.events[0]).toMatchObject({ error: { code: "idempotency_mismatch" } });
  });

  test("of a failed turn asks the model again, once", async () => {
    let play = failing;
    stage.place("a", (far) => play(far));
    const { session } = await stage.say("Hi", { headers: key });
    play = saying("Now.");
    expect((await stage.say("Hi", { headers: key })).session).toBe(session);
    expect(await stage.history(session)).toEqual(["user: Hi", "assistant: Now."]);
  });
});

function whole(far: ScriptedCall): void {
  far.respond(200, { "content-type": "application/json" });
  const message = { role: "assistant", content: "Once." };
  far.write(
    JSON.stringify({
      id: "c",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [{ index: 0, message, finish_reason: "stop" }],
    }),
  );
  far.end();
}

describe(":regenerate", () => {
  const regenerate = (session: string | null, body: object = {}, user = "usr_1") =>
    stage.ask(`/v1/chat/sessions/${session}:regenerate`, body, { user });

  test("answers the last question again; the previous response leaves the history and the model's input", async () => {
    let count = 0;
    const upstream = stage.place("a", (far) => saying(`Answer ${++count}.`)(far));
    const { session } = await stage.say("One");
    await stage.say("Two", { session });
    const response = await regenerate(session, { model: "other/model", temperature: 0.5 });
    expect(response.headers.get("service-session-id")).toBe(session);
    expect(await response.text()).toContain("Answer 3.");
    expect(await stage.history(session)).toEqual([
      "user: One",
      "assistant: Answer 1.",
      "user: Two",
      "assistant: Answer 3.",
    ]);
    expect(await bodyOf(upstream)).toMatchObject({
      messages: [{ content: "One" }, { content: "Answer 1." }, { role: "user", content: "Two" }],
      temperature: 0.5,
    });
    expect(await bodyOf(upstream)).toMatchObject({ messages: { length: 3 } });
  });

  test("returns JSON if no stream is requested, and accepts a request without a body", async () => {
    stage.place("a", saying("Hello."));
    const { session } = await stage.say("Hi");
    expect(await (await regenerate(session, { stream: false })).json()).toMatchObject({ object: "response" });
    const bare = await fetch(`${stage.platformUrl}/v1/chat/sessions/${session}:regenerate`, {
      method: "POST",
      headers: { authorization: "Bearer usr_1", "service-project-id": "prj_1" },
    });
    expect(await bare.text()).toContain("response.completed");
  });

  test("returns 400 for an empty session, and 404 for one of another user", async () => {
    const { session } = await stage.say("/new");
    expect((await regenerate(session)).status).toBe(400);
    expect((await regenerate(session, {}, "usr_2")).status).toBe(404);
  });
});

describe("two turns of one session", () => {
  test("run one after the other, and the second includes the first one's response", async () => {
    const upstream = stage.place("a");
    const { session } = await stage.say("/new");
    const first = stage.say("One", { session });
    await vi.waitFor(() => expect(upstream.calls).toHaveLength(1));
    const second = stage.say("Two", { session });
    const [far] = upstream.calls;
    if (far === undefined) throw new Error("not called");
    begin(far);
    far.write(wordChunk("1"));
    finish(far);
    await first;
    await vi.waitFor(() => expect(upstream.calls).toHaveLength(2));
    expect(await bodyOf(upstream)).toMatchObject({
      messages: [{ content: "One" }, { content: "1" }, { content: "Two" }],
    });
    const next = upstream.calls[1];
    if (next) saying("2")(next);
    await second;
    expect(await stage.history(session)).toEqual(["user: One", "assistant: 1", "user: Two", "assistant: 2"]);
  });

  test("leave no trace of the second if it leaves the queue", async () => {
    const upstream = stage.place("a");
    const { session } = await stage.say("/new");
    const first = stage.say("One", { session });
    await vi.waitFor(() => expect(upstream.calls).toHaveLength(1));
    const leaving = new AbortController();
    const second = stage.say("Two", { session, signal: leaving.signal }).catch(() => null);
    await vi.waitFor(() => expect(stage.host?.load.callsInFlight).toBe(2));
    leaving.abort();
    await second;
    await vi.waitFor(() => expect(stage.host?.load.callsInFlight).toBe(1));
    const [far] = upstream.calls;
    if (far) saying("1")(far);
    await first;
    await vi.waitFor(() => expect(stage.host?.load.callsInFlight).toBe(0));
    expect(await stage.history(session)).toEqual(["user: One", "assistant: 1"]);
  });
});
