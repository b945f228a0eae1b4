import { CALL } from "@fairlead/dialects/convert/bridge.fixture";
import type { ChatEvent } from "@fairlead/dialects/convert/wire";
import { CONVERTERS } from "@fairlead/dialects/dialect-specs";
import { BridgedEvents } from "@fairlead/dialects/events/bridged-events";
import { chatFrame } from "@fairlead/dialects/events/sse";
import { assertChatOrder } from "@fairlead/dialects/testing/chat-order";
import { assertResponsesOrder } from "@fairlead/dialects/testing/responses-order";
import { DomainError } from "@fairlead/protocol/errors";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  ASKED,
  type BridgedDialect,
  cutAt,
  eventsOf,
  FINISHED_AT,
  OTHER,
  places,
  UPSTREAM_FRAMES,
} from "./bridged.fixture.ts";

const DIALECTS: readonly BridgedDialect[] = ["chat", "responses"];
const ASK = { stream: true, stream_options: { include_usage: true } };

/** An answer to a caller of this dialect, and what it was sent. */
function answering(caller: BridgedDialect) {
  const sent: string[] = [];
  const convert = CONVERTERS[caller][OTHER[caller]];
  if (convert === null) throw new Error(`no converter of ${caller} calls`);
  const { conversion } = convert({ body: { ...ASKED[caller], ...ASK } }, CALL);
  let now = 0;
  const answer = new BridgedEvents((bytes) => sent.push(bytes.toString()) > 0, {
    conversion,
    now: () => now++,
    hold: () => null,
    readsEvents: false,
  });
  return { answer, sent };
}

function relayed(caller: BridgedDialect, pieces: readonly (string | Buffer)[]): string {
  const { answer, sent } = answering(caller);
  for (const piece of pieces) expect(answer.push(Buffer.from(piece))).toBeNull();
  expect(answer.end()).toBeNull();
  return sent.join("");
}

function assertOrder(caller: BridgedDialect, stream: string): void {
  const events = eventsOf(stream).filter((event) => event !== "[DONE]");
  if (caller === "chat") assertChatOrder(events);
  else assertResponsesOrder(events);
}

describe.each(DIALECTS)("for a caller of %s, a stream in the other dialect", (caller) => {
  const frames = UPSTREAM_FRAMES[OTHER[caller]];
  const whole = relayed(caller, frames);

  test("is converted event by event, in valid order, and ends with [DONE]", () => {
    assertOrder(caller, whole);
    expect(eventsOf(whole).filter((event) => event === "[DONE]")).toHaveLength(1);
    expect(whole.endsWith("data: [DONE]\n\n")).toBe(true);
    expect(whole).toContain(" ✓🌍");
  });

  test("is the same however its bytes are split and its lines end", () => {
    const framing = fc.record({ places, lineEnd: fc.constantFrom("\n", "\r\n", "\r"), comments: fc.boolean() });
    fc.assert(
      fc.property(framing, ({ places: cuts, lineEnd, comments }) => {
        const text = frames.join(comments ? ": note\n\n" : "").replaceAll("\n", lineEnd);
        expect(relayed(caller, cutAt(Buffer.from(`\ufeff${text}`), cuts))).toBe(whole);
      }),
      { numRuns: 200 },
    );
  });

  test("is the same without the empty line after its last event", () => {
    expect(relayed(caller, [frames.join("").trimEnd()])).toBe(whole);
  });

  test("provides its usage, its first token and a running estimate", () => {
    const { answer } = answering(caller);
    const firsts = frames.map((frame) => {
      answer.push(Buffer.from(frame));
      return answer.firstTokenAt;
    });
    expect(answer.usage).toEqual({ inputTokens: 11, cachedInputTokens: 5, outputTokens: 7, reasoningTokens: 3 });
    expect(firsts[0]).toBeNull();
    expect(firsts.at(-1)).toBe(0);
    expect(answer.outputTokens).toBeGreaterThan(4);
    expect(answer).toMatchObject({ finished: true, failed: false });
  });

  test.each(["ends", "is cut"])(
    "that %s after any event but its last fails in the stream and never ends cleanly",
    (how) => {
      for (let kept = 1; kept <= FINISHED_AT[OTHER[caller]]; kept++) {
        const { answer, sent } = answering(caller);
        for (const frame of frames.slice(0, kept)) answer.push(Buffer.from(frame));
        answer.push(Buffer.from((frames[kept] ?? "").slice(0, -3)));
        const fault = how === "ends" ? answer.end() : new DomainError("upstream_failed", "Cut.");
        expect(fault).toMatchObject({ code: "upstream_failed" });
        if (fault) answer.fail(fault);
        const stream = sent.join("");
        assertOrder(caller, stream);
        expect(stream).toContain('"error":{"message":');
        expect(stream).not.toContain("[DONE]");
        expect(answer).toMatchObject({ finished: false, failed: true });
      }
    },
  );

  test("that begins with an error, is empty or is not JSON is a fault as long as nothing was sent", () => {
    for (const said of [
      'data: {"error":{"message":"no","code":400}}\n\n',
      'event: error\ndata: {"message":"no"}\n\n',
      "data: {oops\n\n",
      "data: 7\n\n",
      '{"error":{"message":"no"}}',
      "data: [DONE]\n\n",
      ": nothing\n\n",
      "",
    ]) {
      const { answer, sent } = answering(caller);
      const fault = answer.push(Buffer.from(said)) ?? answer.end();
      expect(fault).toMatchObject({ code: "upstream_failed" });
      expect(sent).toEqual([]);
      // Where a comment was sent before, it has to be told in-band all the same.
      if (fault) answer.fail(fault);
      assertOrder(caller, sent.join(""));
      expect(sent.join("")).toContain('"error":{"message":');
    }
  });

  test.each([
    ['data: {"error":{"message":"too hot","type":"x"}}\n\n', "too hot"],
    ['event: error\ndata: {"message":"too hot","code":"x"}\n\n', "too hot"],
    ['data: {"error":"too hot"}\n\n', "too hot"],
  ])("that reports an error later passes it on in the caller's dialect: %s", (said, message) => {
    const { answer, sent } = answering(caller);
    for (const frame of frames.slice(0, 3)) answer.push(Buffer.from(frame));
    expect(answer.push(Buffer.from(`${said}data: [DONE]\n\n`))).toBeNull();
    expect(answer.end()).toBeNull();
    const stream = sent.join("");
    assertOrder(caller, stream);
    expect(stream).toContain(message);
    expect(stream).not.toContain("[DONE]");
    expect(answer.failed).toBe(true);
  });

  test("does not show credential errors to the caller", () => {
    const { answer, sent } = answering(caller);
    answer.push(Buffer.from(frames.slice(0, 3).join("")));
    const fault = answer.push(
      Buffer.from('data: {"error":{"message":"Key sk-123 is wrong","code":"invalid_api_key"}}\n\n'),
    );
    expect(fault).toMatchObject({ code: "upstream_rejected_credentials" });
    expect(sent.join("")).not.toContain("sk-123");
  });

  test("can have events of any length up to a limit", () => {
    const long = "x".repeat(300_000);
    const { answer, sent } = answering(caller);
    const told =
      caller === "responses"
        ? chatFrame({ choices: [{ index: 0, delta: { content: long }, finish_reason: null }] } as unknown as ChatEvent)
        : `data: ${JSON.stringify({ type: "response.output_text.delta", output_index: 0, delta: long })}\n\n`;
    for (const piece of cutAt(Buffer.from(told), [70_000, 140_000, 200_000])) expect(answer.push(piece)).toBeNull();
    expect(sent.join("")).toContain(long);
    const endless = Buffer.from(`data: ${"y".repeat(1024 * 1024)}`);
    let fault: DomainError | null = null;
    let pushed = 0;
    for (; fault === null && pushed < 100; pushed++) fault = answer.push(endless);
    expect(fault).toMatchObject({ code: "upstream_failed" });
    expect(pushed).toBeLessThan(34);
  });
});
