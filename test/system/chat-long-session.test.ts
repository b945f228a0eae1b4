import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import type { ChatCaller } from "../support/chat-caller.ts";
import { CHAT_MODEL, ChatStage, SMALL_MODEL } from "../support/chat-stage.ts";
import { HELLO, RECALL, RECALLED_BY } from "../support/scripted-model.ts";

/** A session of ten thousand messages: that it goes on, and can be read, searched and taken away whole. */

const TURNS = 5000;
const textOf = (turn: number): string => `Message number ${turn}.`;
const sessionSchema = z.looseObject({ id: z.string(), messageCount: z.number() });
const sessionsSchema = z.looseObject({ sessions: z.array(sessionSchema) });
const pageSchema = z.looseObject({ messages: z.array(z.looseObject({ content: z.string() })) });

let stage: ChatStage;
let ann: ChatCaller;
let session = "";

beforeAll(async () => {
  stage = await ChatStage.start();
  ann = await stage.newPerson("ann");
  const first = await ann.turn(textOf(0), { model: SMALL_MODEL });
  expect(first.text).toBe(HELLO);
  session = first.session;
  const questions = Array.from({ length: TURNS - 1 }, (_, index) => textOf(index + 1));
  await stage.fill({ sessionId: session, questions, answer: HELLO });
});
afterAll(() => stage.stop());

test("a long session returns all its messages in order, forwards and backwards", async () => {
  const messages = await ann.messages(session);
  expect(messages).toHaveLength(2 * TURNS);
  messages.forEach(({ content }, index) => expect(content).toBe(index % 2 === 0 ? textOf(index / 2) : HELLO));
  const last = await ann.call("GET", `/v1/chat/sessions/${session}/messages?order=desc&pageSize=2`);
  expect(pageSchema.parse(await last.json()).messages.map(({ content }) => content)).toEqual([
    HELLO,
    textOf(TURNS - 1),
  ]);
  const found = await ann.call("GET", `/v1/chat/sessions/${session}`);
  expect(sessionSchema.parse(await found.json()).messageCount).toBe(2 * TURNS);
});

test("a model with a small context gets the newest whole turns, and the response reports what was cut", async () => {
  const answer = await ann.turn(RECALL, { session, model: SMALL_MODEL });
  const recalled = answer.text.split(RECALLED_BY);
  expect(recalled.length).toBeGreaterThan(5);
  expect(recalled).toEqual(recalled.map((_, index) => textOf(TURNS - recalled.length + index)));
  expect(answer.events.at(-1)).toMatchObject({
    type: "response.completed",
    response: { metadata: { cut_items: String(2 * (TURNS - recalled.length)) } },
  });
});

test("a model with a large context gets the whole session", async () => {
  const answer = await ann.turn(RECALL, { session, model: CHAT_MODEL });
  const recalled = answer.text.split(RECALLED_BY);
  expect(recalled.slice(0, 2)).toEqual([textOf(0), textOf(1)]);
  expect(recalled).toHaveLength(TURNS + 1);
});

test("a long session is found by what was said early on and is exported whole", async () => {
  const found = await ann.call("GET", `/v1/chat/sessions?query=${encodeURIComponent("number 17.")}`);
  expect(sessionsSchema.parse(await found.json()).sessions.map(({ id }) => id)).toEqual([session]);
  const none = await ann.call("GET", `/v1/chat/sessions?query=${encodeURIComponent("number 17x")}`);
  expect(sessionsSchema.parse(await none.json()).sessions).toEqual([]);
  const whole = await (await ann.call("GET", `/v1/chat/sessions/${session}/export`)).text();
  expect(whole).toContain(textOf(0));
  expect(whole).toContain(textOf(TURNS - 1));
});
