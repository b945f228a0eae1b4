import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { asks, calls, gives, says } from "../store/chat-log.fixture.ts";
import {
  type ChatItem,
  callIdOf,
  estimateTokens,
  isCall,
  isOutput,
  type ResponsesItem,
  renderHistory,
  textOf,
} from "./chat-item.ts";
import { buildInput, isQuestion, type TurnToSend } from "./history-input.ts";

const output = (call_id: string): ResponsesItem => ({ type: "function_call_output", call_id, output: "o" });
const question = (text: string): ResponsesItem => asks(text).items[0] ?? {};

function stored(...items: readonly ResponsesItem[]): { items: ChatItem[]; olderItems: number } {
  const chatItems = items.map((item, index) => ({
    id: `msg_${index}`,
    turnId: "trn_1",
    position: index + 1,
    status: "completed" as const,
    item,
    createdAt: 0,
  }));
  return { items: chatItems, olderItems: 0 };
}

const told = (items: readonly ResponsesItem[]): unknown[] =>
  items.map((item) => callIdOf(item) ?? (item["type"] === "message" ? textOf(item) : item["type"]));

const build = (history: ReturnType<typeof stored>, turn: TurnToSend, contextTokens = 100_000): unknown[] =>
  told(buildInput(history, turn, { contextTokens }).input);

describe("the input for a model", () => {
  test("is the history followed by the turn, with this turn's instructions before them", () => {
    const turn = { ...asks("two"), instructions: [{ type: "message", role: "system", content: "Be brief." }] };
    expect(build(stored(question("one"), says("yes")), turn)).toEqual(["Be brief.", "one", "yes", "two"]);
  });

  test("omits IDs and statuses, which only their origin knows", () => {
    const answer = says("yes", { id: "msg_1" });
    const { input } = buildInput(stored(question("one"), answer), asks("two"), { contextTokens: 9000 });
    expect(input[1]).toEqual({ type: "message", role: "assistant", content: [{ type: "output_text", text: "yes" }] });
    const pair = [
      { ...calls("c1"), id: "fc_1" },
      { ...output("c1"), id: "fco_1", status: "completed" },
    ];
    const { input: paired } = buildInput(stored(question("one"), ...pair), asks("two"), { contextTokens: 9000 });
    expect(paired.slice(1, 3)).toEqual([
      { type: "function_call", call_id: "c1", name: "look", arguments: "{}" },
      output("c1"),
    ]);
  });

  test("contains no call without output, and no output without a call (letta#3273, ellmer#459, positron#15719)", () => {
    const history = stored(
      question("one"),
      says("let me"),
      calls("c1"),
      calls("c2"),
      output("c2"),
      output("c9"),
      says("so"),
    );
    expect(build(history, asks("two"))).toEqual(["one", "let me", "c2", "c2", "so", "two"]);
  });

  test("pairs calls with outputs by position, since engines reuse IDs across responses", () => {
    const history = stored(
      question("one"),
      calls("call_0"),
      question("two"),
      calls("call_0"),
      output("call_0"),
      says("so"),
    );
    const { input } = buildInput(history, asks("three"), { contextTokens: 9000 });
    expect(told(input)).toEqual(["one", "two", "call_0", "call_0", "so", "three"]);
  });

  test("contains a partial response as it is, and no empty one (mindroom PR #1362, dify#17191)", () => {
    const history = stored(question("one"), says("half", { status: "incomplete" }), question("two"), says(""));
    expect(build(history, asks("three"))).toEqual(["one", "half", "two", "three"]);
  });

  test("contains reasoning that can be passed back, while its calls are being answered", () => {
    const sealed = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "x" };
    const open = { type: "reasoning", id: "rs_2", summary: [], content: [{ type: "reasoning_text", text: "hm" }] };
    const summary = { type: "reasoning", id: "rs_3", summary: [{ type: "summary_text", text: "hm" }] };
    const history = stored(question("one"), sealed, says("yes"), question("two"), sealed, open, summary, calls("c1"));
    expect(build(history, gives(["c1", "x"]))).toEqual(["one", "yes", "two", "reasoning", "reasoning", "c1", "c1"]);
    expect(build(history, asks("three"))).toEqual(["one", "yes", "two", "three"]);
  });

  test("contains nothing of hosted tools", () => {
    const history = stored(question("one"), { type: "web_search_call", id: "ws_1", status: "completed" }, says("so"));
    expect(build(history, asks("two"))).toEqual(["one", "so", "two"]);
  });

  test("is cut at whole exchanges, and says how many items were cut (openclaw#52024, everruns PR #2039, Clawith#415)", () => {
    const exchange = (name: string): ResponsesItem[] => [
      question(name),
      calls(name),
      output(name),
      says("x".repeat(400)),
    ];
    const history = { ...stored(...exchange("a"), ...exchange("b"), ...exchange("c")), olderItems: 5 };
    const size = exchange("a").reduce((sum, item) => sum + estimateTokens(item), 0);
    const turn = asks("now");
    const room = (exchanges: number): number =>
      exchanges * size + turn.items.reduce((sum, item) => sum + estimateTokens(item), 0);
    const cut = (contextTokens: number): [number, number] => {
      const { input, cutItems } = buildInput(history, turn, { contextTokens });
      return [input.length, cutItems];
    };
    expect(cut(room(3))).toEqual([13, 5]);
    expect(cut(room(3) - 1)).toEqual([9, 9]);
    expect(cut(room(1))).toEqual([5, 13]);
    expect(cut(room(1) - 1)).toEqual([1, 17]);
    expect(cut(0)).toEqual([1, 17]);
  });

  test("keeps the exchange whose calls are being answered, however long it is", () => {
    const history = stored(question("old"), says("yes"), question("one"), calls("c1"));
    expect(buildInput(history, gives(["c1", "x".repeat(10_000)]), { contextTokens: 100 })).toMatchObject({
      cutItems: 2,
    });
    expect(build(history, gives(["c1", "x".repeat(10_000)]), 100)).toEqual(["one", "c1", "c1"]);
  });

  test("is well-formed for every history and every context size", () => {
    const id = fc.constantFrom("c1", "c2", "c3");
    const item = fc.oneof(
      fc.string({ maxLength: 40 }).map((text) => question(`q${text}`)),
      fc.string({ maxLength: 40 }).map((text) => says(text)),
      id.map((each) => calls(each)),
      id.map(output),
      fc.constant<ResponsesItem>({ type: "reasoning", id: "rs", summary: [], encrypted_content: "x" }),
      fc.constant<ResponsesItem>({ type: "image_generation_call", id: "ig" }),
    );
    fc.assert(
      fc.property(fc.array(item, { maxLength: 30 }), fc.nat(200), (items, contextTokens) => {
        const history = stored(...items);
        const { input, cutItems } = buildInput(history, asks("now"), { contextTokens });
        const open = new Set<string>();
        for (const each of input) {
          const callId = callIdOf(each) ?? "";
          if (isCall(each)) open.add(callId);
          if (isOutput(each)) expect(open.delete(callId)).toBe(true);
          if (isQuestion(each)) expect([...open]).toEqual([]);
        }
        expect([...open]).toEqual([]);
        expect(told(input).at(-1)).toBe("now");
        const kept = items.slice(cutItems);
        expect(kept[0] === undefined || isQuestion(kept[0])).toBe(true);
        const used = kept.reduce((sum, each) => sum + estimateTokens(each), 0);
        expect(kept.length === 0 || used <= contextTokens).toBe(true);
      }),
    );
  });
});

describe("a rendered history", () => {
  test("contains only messages, and none that were superseded", () => {
    const { items } = stored(
      question("one"),
      { type: "reasoning", summary: [] },
      calls("c1"),
      output("c1"),
      says("yes"),
    );
    const [first, ...rest] = items;
    if (first === undefined) throw new Error("no item");
    expect(renderHistory([{ ...first, status: "superseded" }, ...items])).toEqual([
      { role: "user", content: "one" },
      { role: "assistant", content: "yes" },
    ]);
    expect(renderHistory(rest)).toHaveLength(1);
  });

  test("joins parts, and shows refusals as text", () => {
    const content = [{ type: "output_text", text: "a" }, { type: "refusal", refusal: "b" }, { type: "other" }, 7];
    expect(textOf({ type: "message", role: "assistant", content })).toBe("ab");
    expect(textOf({ role: "user", content: "plain" })).toBe("plain");
    expect(textOf(calls("c1"))).toBe("");
  });
});

describe("a token estimate", () => {
  test("is one token for four bytes, and at least a thousand for an attachment", () => {
    expect(estimateTokens(question("a".repeat(400)))).toBe(104);
    expect(estimateTokens(question("ä".repeat(400)))).toBe(204);
    const image = (length: number): ResponsesItem => ({
      type: "message",
      role: "user",
      content: [{ type: "input_image", image_url: `data:image/png;base64,${"A".repeat(length)}` }],
    });
    expect(estimateTokens(image(10_000))).toBe(1004);
    expect(estimateTokens(image(1_000_000))).toBeGreaterThan(5000);
    expect(estimateTokens({ type: "function_call_output", call_id: "c", output: "a".repeat(400) })).toBe(104);
    expect(estimateTokens({ type: "reasoning", encrypted_content: "a".repeat(4000) })).toBeGreaterThan(1000);
  });
});
