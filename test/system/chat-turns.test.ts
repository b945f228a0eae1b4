import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { assertResponsesOrder } from "../../packages/dialects/src/testing/responses-order.ts";
import type { ChatCaller, TurnAnswer, TurnOptions } from "../support/chat-caller.ts";
import { ChatStage } from "../support/chat-stage.ts";
import type { EngineScript } from "../support/scripted-engine.ts";
import { HELLO, NEVER_ENDS, RECALL } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";

/** Turns as people and their clients really make them: at once, again and again, from the wrong account, with too little money. */

const CREDITS = 1_000_000_000;
/** Of one answer of the scripted model: 7 tokens in, 6 out. */
const PRICE = 19_000;

let stage: ChatStage;
let ann: ChatCaller;
let people = 0;

beforeAll(async () => {
  stage = await ChatStage.start({ FAIRLEAD_BILLING_MODE: "prepaid" });
});
afterAll(() => stage.stop());
beforeEach(async () => {
  stage.script = stage.upstream.script;
  ann = await newMember();
});

/** Somebody with a project and money of their own. */
async function newMember(): Promise<ChatCaller> {
  const person = await stage.newPerson(`person-${people++}`);
  await stage.addCredits(person.identity.projectId, CREDITS);
  return person;
}

/** Refuses so many calls with a status, before it answers. */
function refusing(times: number, status: number): EngineScript {
  let left = times;
  return (request, response) => {
    if (left-- <= 0) {
      void stage.upstream.script(request, response);
      return;
    }
    request.resume();
    const error = { message: "try again", type: "server_error", code: null, param: null };
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ error }));
  };
}

/** As the SDKs do by themselves: the same call again, three times in all, after a moment. */
async function persist(text: string, options: TurnOptions = {}): Promise<TurnAnswer> {
  for (let attempt = 1; ; attempt++) {
    const answer = await ann.turn(text, options);
    const again = [408, 409, 429].includes(answer.status) || answer.status >= 500;
    if (!again || attempt === 3 || answer.headers.get("x-should-retry") === "false") return answer;
    await sleep(20);
  }
}

const questionsIn = (history: readonly string[]): string[] => history.filter((line) => line.startsWith("user: "));

describe("a session", () => {
  test("starts with the first turn, remembers what was said, and is named in every response", async () => {
    const first = await ann.turn("My name is Ada.");
    expect(first).toMatchObject({ status: 200, text: HELLO, done: true });
    expect(first.session).toMatch(/^ses_/);
    const { session } = first;
    for (const text of ["I like roses.", "And tea."]) expect((await ann.turn(text, { session })).session).toBe(session);
    const recalled = await ann.turn(RECALL, { session });
    expect(recalled.text).toBe("My name is Ada. | I like roses. | And tea.");
    assertResponsesOrder(recalled.events);
    expect(await ann.history(session)).toHaveLength(8);
  });

  test("is accessible to no other person, and not to the same person in another project", async () => {
    const { session } = await ann.turn("Between us");
    const bob = await newMember();
    for (const [method, path, body] of [
      ["GET", `/v1/chat/sessions/${session}/messages`],
      ["GET", `/v1/chat/history?sessionId=${session}`],
      ["PATCH", `/v1/chat/sessions/${session}`, { title: "mine" }],
      ["DELETE", `/v1/chat/sessions/${session}`],
      ["POST", `/v1/chat/sessions/${session}:stop`, {}],
      ["POST", `/v1/chat/sessions/${session}:regenerate`, {}],
    ] as const) {
      const answer = await bob.call(method, path, body === undefined ? {} : { body });
      expect([path, answer.status]).toEqual([path, 404]);
      expect(await answer.text()).not.toContain("Between us");
    }
    expect(await bob.turn("Tell me", { session })).toMatchObject({ status: 404, error: { code: "session_not_found" } });
    const elsewhere = await ann.call("POST", "/v1/chat/responses", {
      headers: { "service-project-id": bob.identity.projectId, "service-session-id": session },
      body: { messages: [{ role: "user", content: "Hi" }] },
    });
    expect(elsewhere.status).toBe(403);
    expect(await ann.history(session)).toEqual(["user: Between us", `assistant: ${HELLO}`]);
  });

  test("processes turns from two tabs one after the other, and both see both", async () => {
    const { session } = await ann.turn("Hi");
    const texts = ["from the left", "from the right", "from the left again"];
    const answers = await Promise.all(texts.map((text) => ann.turn(text, { session })));
    for (const answer of answers) expect(answer).toMatchObject({ status: 200, text: HELLO, done: true });
    const history = await ann.history(session);
    expect(questionsIn(history).toSorted()).toEqual(["Hi", ...texts].map((text) => `user: ${text}`).toSorted());
    // Each question is followed by its own answer.
    history.forEach((line, index) => expect(line.startsWith(index % 2 === 0 ? "user: " : "assistant: ")).toBe(true));
    const said = (await ann.turn(RECALL, { session })).text.split(" | ");
    expect(said.toSorted()).toEqual(["Hi", ...texts].toSorted());
  });

  test("rejects a turn that waits too long for the previous one and does not keep its question", async () => {
    const { session } = await ann.turn("Hi");
    const leaving = new AbortController();
    const running = await ann.begin(NEVER_ENDS, { session, signal: leaving.signal });
    const refused = await ann.turn("Me too", { session });
    expect(refused).toMatchObject({ status: 409, session, error: { code: "session_busy" } });
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    leaving.abort();
    await running.text().catch(() => undefined);
    expect(await ann.turn("Me too", { session })).toMatchObject({ status: 200, text: HELLO });
    expect(questionsIn(await ann.history(session))).toEqual(["user: Hi", `user: ${NEVER_ENDS}`, "user: Me too"]);
  });
});

describe("a response that is stopped", () => {
  test("by :stop ends its stream as incomplete, and what was generated is kept", async () => {
    const { session } = await ann.turn("Hi");
    const running = await ann.begin(NEVER_ENDS, { session });
    await waitFor("the turn to run", 10_000, async () => (await ann.messages(session)).length === 4);
    expect((await ann.call("POST", `/v1/chat/sessions/${session}:stop`, { body: {} })).status).toBe(200);
    const stream = await running.text();
    expect(stream).toContain("response.incomplete");
    expect(stream.endsWith("data: [DONE]\n\n")).toBe(true);
    const last = (await ann.messages(session)).at(-1);
    expect(last).toMatchObject({ role: "assistant", status: "incomplete", content: expect.stringMatching(/^Hello/) });
  });

  test("by a disconnect is kept as far as it was generated, and the engine is stopped", async () => {
    const before = stage.upstream.left;
    const leaving = new AbortController();
    const running = await ann.begin(NEVER_ENDS, { signal: leaving.signal });
    const session = running.headers.get("service-session-id") ?? "";
    await running.body?.getReader().read();
    leaving.abort();
    await waitFor("the engine to be told", 10_000, async () => stage.upstream.left > before);
    const last = await waitFor("the partial answer", 10_000, async () => {
      const message = (await ann.messages(session)).at(-1);
      return message?.status === "incomplete" && message;
    });
    expect(last.content).toMatch(/^Hello/);
    expect((await ann.turn("And now?", { session })).text).toBe(HELLO);
  });
});

describe("a client that retries by itself", () => {
  test.each([
    ["a new session", false],
    ["a session", true],
  ])("after upstream failures in %s causes one question, one response and one charge", async (_name, hasSession) => {
    const session = hasSession ? (await ann.turn("Hi")).session : undefined;
    stage.script = refusing(2, 500);
    const answer = await persist("Tell me more", { session });
    expect(answer).toMatchObject({ status: 200, text: HELLO });
    const history = await ann.history(answer.session);
    expect(history.slice(session === undefined ? 0 : 2)).toEqual(["user: Tell me more", `assistant: ${HELLO}`]);
    await expectCharges(hasSession ? 2 : 1);
  });

  test("and gives up leaves one unanswered question, which the next attempt supersedes", async () => {
    stage.script = refusing(3, 503);
    const failed = await persist("Are you there?");
    expect(failed).toMatchObject({ status: 502, error: { message: "responsive: try again" } });
    expect(questionsIn(await ann.history(failed.session))).toEqual(["user: Are you there?"]);
    const answered = await ann.turn("Are you there?", { session: failed.session });
    expect(await ann.history(answered.session)).toEqual(["user: Are you there?", `assistant: ${HELLO}`]);
    await expectCharges(1);
  });

  test("without naming its session starts a new one if that session has continued since its first question", async () => {
    stage.script = refusing(1, 500);
    const failed = await ann.turn("Hello?");
    expect((await ann.turn("Hello?")).session).toBe(failed.session);
    stage.script = refusing(1, 500);
    const second = await ann.turn("Anybody?");
    await ann.turn("Anybody?", { session: second.session });
    expect((await ann.turn("Anybody?")).session).not.toBe(second.session);
  });

  test("after a 409 asks its question once", async () => {
    const { session } = await ann.turn("Hi");
    const running = await ann.begin(NEVER_ENDS, { session });
    const trying = persist("Me too", { session });
    await sleep(5500);
    await ann.call("POST", `/v1/chat/sessions/${session}:stop`, { body: {} });
    await running.text();
    expect((await trying).status).toBe(200);
    expect(questionsIn(await ann.history(session)).filter((line) => line === "user: Me too")).toHaveLength(1);
  });

  test("with an Idempotency-Key gets the lost response without another call to the model", async () => {
    const first = await ann.turn("Once only", { idempotencyKey: "k-1" });
    const asked = stage.upstream.asked.length;
    const repeated = await ann.turn("Once only", { idempotencyKey: "k-1" });
    expect(repeated).toMatchObject({ status: 200, text: HELLO, session: first.session, done: true });
    assertResponsesOrder(repeated.events);
    expect(stage.upstream.asked.length).toBe(asked);
    expect(await ann.history(first.session)).toEqual(["user: Once only", `assistant: ${HELLO}`]);
    await expectCharges(1);
    expect(await ann.turn("Something else", { idempotencyKey: "k-1" })).toMatchObject({
      status: 409,
      error: { code: "idempotency_mismatch" },
    });
  });

  test("with /new opens one session", async () => {
    const opened = await Promise.all([ann.turn("/new"), ann.turn("/new")]);
    const again = await ann.turn(" /new\n");
    expect(new Set([...opened, again].map(({ session }) => session)).size).toBe(1);
    expect(again.done).toBe(true);
    assertResponsesOrder(again.events);
    await expectCharges(0);
  });
});

describe("money", () => {
  test("that is missing fails the turn with 402, and the question is kept until there is some", async () => {
    const poor = await stage.newPerson(`person-${people++}`);
    const refused = await poor.turn("May I?");
    expect(refused).toMatchObject({ status: 402, error: { code: "insufficient_balance" } });
    await stage.addCredits(poor.identity.projectId, CREDITS);
    const answered = await poor.turn("May I?", { session: refused.session });
    expect(answered.text).toBe(HELLO);
    expect(await poor.history(answered.session)).toEqual(["user: May I?", `assistant: ${HELLO}`]);
  });

  test("that was reserved is released, whatever the outcome of the turn", async () => {
    stage.script = refusing(1, 500);
    await ann.turn("Hi");
    await ann.turn("Hi");
    await expectCharges(1);
    expect((await ann.balance()).balanceNanoDollars).toBe(CREDITS - PRICE);
  });
});

/** The ledger is written behind: so many answers are paid for, and no more once all is settled. */
async function expectCharges(count: number): Promise<void> {
  await waitFor("the holds to be settled", 10_000, async () => (await ann.balance()).heldNanoDollars === 0);
  await waitFor("the charges", 10_000, async () => (await ann.charges()).length >= count);
  expect(await ann.charges()).toEqual(Array.from({ length: count }, () => -PRICE));
}
