import { DomainError } from "@fairlead/protocol/errors";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Dialect } from "../calls/dialect.ts";
import { jsonOr } from "../json/json-or.ts";
import type { AnswerEvent } from "./answer-event.ts";
import { EventAnswer } from "./event-answer.ts";
import { eventData } from "./event-data.ts";
import { MAX_HELD_BYTES } from "./event-splitter.ts";

interface Relayed {
  readonly answer: EventAnswer;
  readonly text: () => string;
}

function open(dialect: Dialect = "chat", hidesUsage = true, now: () => number = () => 0): Relayed {
  const pieces: Buffer[] = [];
  const answer = new EventAnswer((bytes) => pieces.push(Buffer.from(bytes)) > 0, {
    dialect,
    hidesUsage,
    requestId: "req_1",
    model: "n/m",
    createdAt: 1,
    now,
  });
  return { answer, text: () => Buffer.concat(pieces).toString() };
}

function relay(pieces: readonly Buffer[], dialect: Dialect = "chat", hidesUsage = true): Relayed {
  const relayed = open(dialect, hidesUsage);
  for (const piece of pieces) expect(relayed.answer.push(piece)).toBeNull();
  expect(relayed.answer.end()).toBeNull();
  return relayed;
}

/** Cuts a Buffer at the given places, which may leave empty pieces. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

const USAGE = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
const READ = { inputTokens: 5, cachedInputTokens: 0, outputTokens: 3, reasoningTokens: 0 };
const usageChunk = JSON.stringify({ id: "c", choices: [], usage: USAGE });

/** Payloads of a healthy chat stream, whatever the model says. */
const payload = fc.oneof(
  fc.string({ unit: "binary" }).map((content) => ({ choices: [{ index: 0, delta: { content } }], usage: null })),
  fc
    .constantFrom('"usage"', '"error":{"message":"x"}', "data: [DONE]\n\n", "\n\nevent: error\n", "\u2028\r")
    .map((content) => ({
      choices: [{ index: 0, delta: { content }, finish_reason: null }],
    })),
  fc.constant({
    choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '{"usage":{}}' } }] } }],
  }),
  fc.constant({ choices: [], prompt_filter_results: [] }),
  fc.constant({ choices: [{ index: 0, delta: {}, finish_reason: "error" }], usage: null }),
);

/** One of the ways in which a frame may be written. */
const writing = fc.record({
  lineEnd: fc.constantFrom("\n", "\r\n", "\r"),
  space: fc.constantFrom("", " "),
  comment: fc.constantFrom("", ": ping", "id: 7"),
  lines: fc.boolean(),
});

const frame = fc.tuple(payload, writing).map(([value, { lineEnd, space, comment, lines }]) => {
  const json = lines ? JSON.stringify(value, null, 1).split("\n") : [JSON.stringify(value)];
  const all = [...(comment === "" ? [] : [comment]), ...json.map((line) => `data:${space}${line}`)];
  return `${all.join(lineEnd)}${lineEnd}${lineEnd}`;
});

describe("a stream of chat completion chunks", () => {
  test("is forwarded byte for byte, however it is framed and split", () => {
    const stream = fc.record({
      frames: fc.array(frame, { maxLength: 8 }),
      mark: fc.constantFrom("", "\ufeff"),
      end: fc.constantFrom("data: [DONE]\n\n", "data:[DONE]\r\n\r\n", "data: [DONE]\r\r", "data: [DONE]"),
      cuts: fc.array(fc.nat(), { maxLength: 12 }),
    });
    const property = fc.property(stream, ({ frames, mark, end, cuts }) => {
      const text = mark + frames.join("") + end;
      const relayed = relay(cut(Buffer.from(text), cuts));
      expect(relayed.text()).toBe(text);
      expect(relayed.answer.usage).toBeNull();
      expect(relayed.answer.failed).toBe(false);
    });
    fc.assert(property, { numRuns: 1000 });
  });

  test("loses only the usage chunk if usage was not requested", () => {
    const stream = fc.record({
      frames: fc.array(frame, { maxLength: 4 }),
      lineEnd: fc.constantFrom("\n", "\r\n", "\r"),
      cuts: fc.array(fc.nat(), { maxLength: 8 }),
    });
    const property = fc.property(stream, ({ frames, lineEnd, cuts }) => {
      const said = frames.join("");
      const extra = `data: ${usageChunk}${lineEnd}${lineEnd}`;
      const pieces = cut(Buffer.from(`${said}${extra}data: [DONE]\n\n`), cuts);
      const hidden = relay(pieces);
      expect(hidden.text()).toBe(`${said}data: [DONE]\n\n`);
      expect(hidden.answer.usage).toEqual(READ);
      const shown = relay(pieces, "chat", false);
      expect(shown.text()).toBe(`${said}${extra}data: [DONE]\n\n`);
      expect(shown.answer.usage).toEqual(READ);
    });
    fc.assert(property, { numRuns: 500 });
  });

  test.each([
    ["with choices", { choices: [{ index: 0, delta: { content: "x" } }], usage: USAGE }],
    ["with a usage of null", { choices: [], usage: null }],
    [
      "with choices that are too long to buffer",
      { choices: [{ delta: { content: "x".repeat(20_000) } }], usage: USAGE },
    ],
  ])("keeps a chunk %s", (_name, value) => {
    const text = `data: ${JSON.stringify(value)}\n\ndata: [DONE]\n\n`;
    expect(relay([Buffer.from(text)]).text()).toBe(text);
  });

  test("has the last usage if every chunk reports one", () => {
    const tell = (tokens: number): string =>
      `data: ${JSON.stringify({ choices: [{ delta: { content: "x" } }], usage: { prompt_tokens: 5, completion_tokens: tokens } })}\n\n`;
    const { answer } = relay([Buffer.from(`${tell(1)}${tell(2)}${tell(3)}data: [DONE]\n\n`)]);
    expect(answer.usage).toEqual(READ);
  });

  test("buffers little, however long its events are", () => {
    const relayed = open();
    const piece = Buffer.alloc(16 * 1024, "x");
    relayed.answer.push(Buffer.from("data: "));
    let pushed = 6;
    for (let i = 0; i < 100; i++) {
      relayed.answer.push(piece);
      pushed += piece.length;
      expect(pushed - relayed.text().length).toBeLessThanOrEqual(MAX_HELD_BYTES);
    }
    relayed.answer.push(Buffer.from("\n\ndata: [DONE]\n\n"));
    expect(relayed.answer.end()).toBeNull();
    expect(relayed.text()).toBe(`data: ${"x".repeat(100 * piece.length)}\n\ndata: [DONE]\n\n`);
  });

  test("is estimated from what arrived if it is cut off", () => {
    const relayed = open();
    relayed.answer.push(Buffer.from('data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'));
    expect(relayed.answer.outputTokens).toBe(0);
    const said = (content: string): Buffer => Buffer.from(`data: {"choices":[{"delta":{"content":"${content}"}}]}\n\n`);
    // A delta is a token at least.
    for (const word of ["One", " two", " six"]) relayed.answer.push(said(word));
    expect(relayed.answer.outputTokens).toBe(3);
    relayed.answer.push(said("x".repeat(400)));
    expect(relayed.answer.outputTokens).toBeGreaterThanOrEqual(100);
    expect(relayed.answer.outputTokens).toBeLessThan(120);
  });

  test.each([
    ["only the role", { role: "assistant", content: "" }, null],
    ["nothing", {}, null],
    ["text", { role: "assistant", content: "Hi" }, 5],
    ["reasoning", { reasoning_content: "Hm" }, 5],
    ["a tool call", { tool_calls: [{ index: 0, function: { name: "f", arguments: "" } }] }, 5],
  ])("sets the time of its first token correctly for a delta with %s", (_name, delta, at) => {
    const relayed = open("chat", true, () => 5);
    relayed.answer.push(Buffer.from(`data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`));
    expect(relayed.answer.firstTokenAt).toBe(at);
  });
});

describe("a stream of responses", () => {
  const frameOf = (type: string, rest: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
  const usage = { input_tokens: 5, output_tokens: 3, total_tokens: 8 };

  test.each([10, 200_000])("reports its usage at the end, after %i bytes of content", (size) => {
    const tools = [{ parameters: { properties: { usage: { default: { input_tokens: 1, output_tokens: 1 } } } } }];
    const response = { output: "x".repeat(size), tools, usage, metadata: { usage: "y" } };
    const text = frameOf("response.created", { response: { id: "r" } }) + frameOf("response.completed", { response });
    const relayed = relay(cut(Buffer.from(text), [3000, 70_000, 100_001]), "responses");
    expect(relayed.text()).toBe(text);
    expect(relayed.answer.usage).toEqual(READ);
  });

  test("ends normally if its response is incomplete", () => {
    const response = { usage, incomplete_details: { reason: "max_output_tokens" } };
    expect(relay([Buffer.from(frameOf("response.incomplete", { response }))], "responses").answer.usage).toEqual(READ);
  });

  test("has its first token with its first delta", () => {
    const relayed = open("responses", false, () => 9);
    relayed.answer.push(Buffer.from(frameOf("response.created", { response: { id: "r" } })));
    expect(relayed.answer.firstTokenAt).toBeNull();
    relayed.answer.push(Buffer.from(frameOf("response.output_text.delta", { delta: "Hello" })));
    expect(relayed.answer.firstTokenAt).toBe(9);
    expect(relayed.answer.outputTokens).toBe(2);
  });
});

describe("a stream whose sink reads events", () => {
  /** @returns the answer, and the events that were sent of it. */
  function openRead(dialect: Dialect = "chat"): { readonly answer: EventAnswer; readonly events: AnswerEvent[] } {
    const events: AnswerEvent[] = [];
    const send = (_bytes: Buffer, sent: readonly AnswerEvent[] = []): boolean => {
      events.push(...sent.map((event) => ({ ...event, bytes: Buffer.from(event.bytes) })));
      return true;
    };
    const options = { dialect, hidesUsage: false, requestId: "req_1", model: "n/m", createdAt: 1, now: () => 0 };
    return { answer: new EventAnswer(send, options, () => null), events };
  }

  const long = fc.nat(200_000).map((length) => `data: ${JSON.stringify({ choices: [], x: "y".repeat(length) })}\n\n`);

  test("delivers every event complete, parsed and byte for byte, however long it is", () => {
    const stream = fc.record({
      frames: fc.array(fc.oneof({ weight: 5, arbitrary: frame }, long), { maxLength: 8 }),
      cuts: fc.array(fc.nat(), { maxLength: 12 }),
    });
    const property = fc.property(stream, ({ frames, cuts }) => {
      const { answer, events } = openRead();
      const all = [...frames, "data: [DONE]\n\n"];
      for (const piece of cut(Buffer.from(all.join("")), cuts)) expect(answer.push(piece)).toBeNull();
      expect(answer.end()).toBeNull();
      expect(events.map(({ bytes }) => bytes.toString())).toEqual(all);
      expect(events.map(({ isDone }) => isDone)).toEqual(all.map((_, index) => index === frames.length));
      expect(events.map(({ value }) => value)).toEqual(all.map((text) => jsonOr(eventData(text).data ?? "", null)));
    });
    fc.assert(property, { numRuns: 300 });
  });

  test("can end without its last empty line", () => {
    const { answer, events } = openRead();
    answer.push(Buffer.from('data: {"choices":[]}\n\ndata: [DONE]'));
    expect(answer.end()).toBeNull();
    expect(events.at(-1)).toEqual({ bytes: Buffer.from("data: [DONE]\n\n"), value: null, isDone: true });
  });

  test("drops a partial event, and reports the failure as an event", () => {
    const { answer, events } = openRead("responses");
    answer.push(Buffer.from(`event: x\ndata: {"type":"x"}\n\ndata: {"type":"${"y".repeat(100_000)}`));
    answer.fail(new DomainError("upstream_failed", "gone"));
    expect(events.map(({ value }) => (value as { type?: string }).type)).toEqual(["x", "error", "response.failed"]);
  });
});
