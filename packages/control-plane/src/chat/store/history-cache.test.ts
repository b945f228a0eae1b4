import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { estimateTokens, type ResponsesItem, roleOf } from "../items/chat-item.ts";
import { grown, newSession, type SessionRecord, shrunk } from "../items/chat-session.ts";
import { buildInput, roomFor, type TurnToSend } from "../items/history-input.ts";
import type { HistoryItem, ItemSize } from "./chat-item-store.ts";
import { asks, calls, gives, says, scopeOf } from "./chat-log.fixture.ts";
import { HistoryCache, readHistory } from "./history-cache.ts";

/** One session with its rows, which counts what is read of them. */
class CountedSession {
  session: SessionRecord = newSession(scopeOf("prj_1", "usr_1"), {
    id: "ses_1",
    model: null,
    openedFrom: null,
    createdAt: 0,
  });
  live: HistoryItem[] = [];
  read = 0;

  append(items: readonly ResponsesItem[]): void {
    const first = this.session.nextPosition;
    this.live.push(
      ...items.map((item, index) => ({
        id: `msg_${first + index}`,
        turnId: "trn_1",
        position: first + index,
        status: "completed" as const,
        item,
        createdAt: 0,
        tokens: estimateTokens(item),
        bytes: JSON.stringify(item).length,
        isQuestion: roleOf(item) === "user",
      })),
    );
    this.session = grown(
      this.session,
      items.map(() => "message"),
      0,
    );
  }

  supersede(count: number): void {
    const gone = this.live.splice(Math.max(0, this.live.length - count));
    this.session = shrunk(
      this.session,
      gone.map(() => "message"),
    );
  }

  async sizesBefore(_session: string, before: number, limit: number): Promise<ItemSize[]> {
    const found = this.live.filter(({ position }) => position < before).toReversed();
    return found.slice(0, limit).map(({ position, tokens, item }) => ({ position, tokens, role: roleOf(item) }));
  }

  async listFrom(_session: string, from: number): Promise<HistoryItem[]> {
    const found = this.live.filter(({ position }) => position >= from);
    this.read += found.length;
    return found;
  }

  /** As a turn does. */
  async turn(cache: HistoryCache, now: TurnToSend, contextTokens: number): Promise<ReturnType<typeof buildInput>> {
    const room = roomFor(now, contextTokens);
    const { tail, known } = await readHistory(this, this.session, { room, known: cache.find(this.session) });
    cache.keep(known);
    return buildInput(tail, now, { contextTokens });
  }

  whole(now: TurnToSend, contextTokens: number): ReturnType<typeof buildInput> {
    return buildInput({ items: this.live, olderItems: 0 }, now, { contextTokens });
  }
}

const item = fc.oneof(
  fc.nat(2000).map((length) => asks(`q${"x".repeat(length)}`).items[0] ?? {}),
  fc.nat(2000).map((length) => says("x".repeat(length + 1))),
  fc.constantFrom("c1", "c2").map((id) => calls(id)),
  fc.constantFrom("c1", "c2").map((call_id): ResponsesItem => ({ type: "function_call_output", call_id, output: "o" })),
);
const step = fc.oneof(
  fc.record({ append: fc.array(item, { maxLength: 20 }) }),
  fc.record({ supersede: fc.nat(5) }),
  fc.record({ ask: fc.constantFrom(asks("now"), gives(["c1", "o"])), contextTokens: fc.nat(8000) }),
);

describe("a cached history", () => {
  test("gives models the same input as the stored one, whatever was added or superseded since", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60, size: "max" }), async (steps) => {
        const stored = new CountedSession();
        const cache = new HistoryCache();
        for (const each of steps) {
          if ("append" in each) stored.append(each.append);
          else if ("supersede" in each) stored.supersede(each.supersede);
          else {
            const given = await stored.turn(cache, each.ask, each.contextTokens);
            expect(given).toEqual(stored.whole(each.ask, each.contextTokens));
          }
        }
      }),
      { numRuns: 150 },
    );
  });

  test("is not read again: a turn reads only what the previous turn added", async () => {
    const stored = new CountedSession();
    const cache = new HistoryCache();
    for (let n = 0; n < 500; n++) stored.append([asks(`question ${n}`).items[0] ?? {}, says("x".repeat(400))]);
    await stored.turn(cache, asks("now"), 10_000);
    expect(stored.read).toBeGreaterThan(150);
    for (let n = 0; n < 20; n++) {
      stored.append([asks(`again ${n}`).items[0] ?? {}, says("y".repeat(40 * n + 1))]);
      stored.read = 0;
      await stored.turn(cache, asks("z".repeat(1 + 100 * (n % 5))), 10_000);
      expect(stored.read).toBe(2);
    }
  });

  test("uses a limited amount of memory, and the least recently read session is dropped", async () => {
    const cache = new HistoryCache({ maxBytes: 20_000, maxSessionBytes: 10_000 });
    const sessions = Array.from({ length: 5 }, (_, n) => {
      const stored = new CountedSession();
      stored.session = { ...stored.session, id: `ses_${n}` };
      stored.append([asks("a").items[0] ?? {}, says("x".repeat(n === 4 ? 10_000 : 6000))]);
      return stored;
    });
    for (const stored of sessions) await stored.turn(cache, asks("now"), 100_000);
    const known = sessions.map(({ session }) => cache.find(session) !== null);
    expect(known).toEqual([false, false, true, true, false]);
  });
});
