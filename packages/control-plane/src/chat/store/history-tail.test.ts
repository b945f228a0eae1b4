import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { estimateTokens, type ResponsesItem, roleOf, type StoredItem } from "../items/chat-item.ts";
import { grown, newSession } from "../items/chat-session.ts";
import { buildInput, roomFor } from "../items/history-input.ts";
import type { HistoryItem, ItemSize } from "./chat-item-store.ts";
import { asks, calls, gives, says, scopeOf } from "./chat-log.fixture.ts";
import { readTail } from "./history-tail.ts";

/** A session's rows, which count what is read of them. */
class CountedItems {
  readonly items: readonly StoredItem[];
  sizes = 0;
  read = 0;

  constructor(items: readonly ResponsesItem[]) {
    this.items = items.map((item, index) => ({
      id: `msg_${index}`,
      turnId: "trn_1",
      position: index + 1,
      status: "completed",
      item,
      createdAt: 0,
      usage: null,
    }));
  }

  async sizesBefore(_session: string, before: number, limit: number): Promise<ItemSize[]> {
    const found = this.items.filter(({ position }) => position < before).toReversed();
    const sizes = found.slice(0, limit);
    this.sizes += sizes.length;
    return sizes.map(({ position, item }) => ({ position, tokens: estimateTokens(item), role: roleOf(item) }));
  }

  async listFrom(_session: string, from: number): Promise<HistoryItem[]> {
    const found = this.items.filter(({ position }) => position >= from);
    this.read += found.length;
    return found.map((each) => ({
      ...each,
      tokens: estimateTokens(each.item),
      bytes: 1,
      isQuestion: roleOf(each.item) === "user",
    }));
  }
}

const sessionOf = (count: number): ReturnType<typeof newSession> => {
  const fresh = { id: "ses_1", model: null, openedFrom: null, createdAt: 0 };
  return grown(
    newSession(scopeOf("prj_1", "usr_1"), fresh),
    Array.from({ length: count }, () => "message"),
    0,
  );
};

describe("the part of a history that is read", () => {
  test("is, of ten thousand messages, what fits plus the sizes of a few more", async () => {
    const messages = Array.from({ length: 5000 }, (_, n) => [
      asks(`question ${n}`).items[0] ?? {},
      says("x".repeat(400)),
    ]);
    const items = new CountedItems(messages.flat());
    const { items: tail, olderItems } = await readTail(items, sessionOf(10_000), { tokens: 10_000, keepsLast: false });
    expect(tail.length + olderItems).toBe(10_000);
    expect(items.read).toBe(tail.length);
    expect(tail.length).toBeGreaterThan(150);
    expect(items.sizes).toBeLessThanOrEqual(tail.length + 2 * 256);
  });

  test("gives models the same input as the whole history", async () => {
    const item = fc.oneof(
      fc.nat(2000).map((length) => asks(`q${"x".repeat(length)}`).items[0] ?? {}),
      fc.nat(2000).map((length) => says("x".repeat(length + 1))),
      fc.constantFrom("c1", "c2").map((id) => calls(id)),
      fc
        .constantFrom("c1", "c2")
        .map((call_id): ResponsesItem => ({ type: "function_call_output", call_id, output: "o" })),
    );
    const turn = fc.constantFrom(asks("now"), gives(["c1", "o"]));
    await fc.assert(
      fc.asyncProperty(
        fc.array(item, { maxLength: 700, size: "max" }),
        turn,
        fc.nat(100_000),
        async (all, now, contextTokens) => {
          const items = new CountedItems(all);
          const tail = await readTail(items, sessionOf(all.length), roomFor(now, contextTokens));
          const whole = { items: items.items, olderItems: 0 };
          expect(buildInput(tail, now, { contextTokens })).toEqual(buildInput(whole, now, { contextTokens }));
        },
      ),
      { numRuns: 60 },
    );
  });
});
