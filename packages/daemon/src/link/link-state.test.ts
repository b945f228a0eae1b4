import { describe, expect, test } from "vitest";
import { type LinkEvent, type LinkState, nextLinkState } from "./link-state.ts";

const states: LinkState[] = [
  { name: "offline", attempt: 3 },
  { name: "hello", attempt: 3 },
  { name: "live" },
  { name: "backing-off", attempt: 4, delayMs: 10 },
  { name: "closed" },
];
const events: LinkEvent[] = [
  { type: "opened" },
  { type: "greeted" },
  { type: "lost", retryAfterMs: null },
  { type: "retry" },
  { type: "close" },
];
const table: Record<LinkState["name"], readonly string[]> = {
  offline: ["hello", "offline", "backing-off", "offline", "closed"],
  hello: ["hello", "live", "backing-off", "hello", "closed"],
  live: ["live", "live", "backing-off", "live", "closed"],
  "backing-off": ["backing-off", "backing-off", "backing-off", "offline", "closed"],
  closed: ["closed", "closed", "closed", "closed", "closed"],
};

describe.each(states)("$name", (state) => {
  test.each(events.map((event, index) => ({ event, index })))("$event.type", ({ event, index }) => {
    expect(nextLinkState(state, event, [0.5, 0.5]).name).toBe(table[state.name][index]);
  });
});

const delay = (state: LinkState, random: [number, number], retryAfterMs: number | null = null): number => {
  const next = nextLinkState(state, { type: "lost", retryAfterMs }, random);
  return next.name === "backing-off" ? next.delayMs : Number.NaN;
};

test("attempts spread over the whole backoff (full jitter), at most 20 s", () => {
  expect(delay({ name: "offline", attempt: 3 }, [0, 0])).toBe(0);
  expect(delay({ name: "offline", attempt: 3 }, [0.5, 0])).toBe(4000);
  expect(delay({ name: "hello", attempt: 99 }, [0.999999, 0])).toBeLessThanOrEqual(20_000);
});

test("daemons that lose a server at the same time do not reconnect at the same time (elastic-agent#13874)", () => {
  expect(delay({ name: "live" }, [0, 0.9])).toBe(4500);
  expect(delay({ name: "offline", attempt: 0 }, [0, 0.9])).toBe(0);
});

test("retry-after is the minimum wait, and sets its own spread for daemons that received it", () => {
  expect(delay({ name: "offline", attempt: 0 }, [0, 0.5], 20_000)).toBe(20_000);
  expect(delay({ name: "offline", attempt: 9 }, [0.5, 0.5], 4000)).toBe(6000);
  expect(delay({ name: "live" }, [0.5, 0.5], 0)).toBe(500);
  expect(delay({ name: "hello", attempt: 0 }, [0.5, 0.5], 3_600_000)).toBe(3_605_000);
});

test("a server that sets the retry time does not lengthen the next backoff", () => {
  const told = nextLinkState({ name: "offline", attempt: 2 }, { type: "lost", retryAfterMs: 1000 }, [0, 0]);
  expect(told).toEqual({ name: "backing-off", attempt: 2, delayMs: 1000 });
});

test("a live link resets earlier attempts", () => {
  expect(nextLinkState({ name: "live" }, { type: "lost", retryAfterMs: null }, [0, 0])).toMatchObject({ attempt: 1 });
});
