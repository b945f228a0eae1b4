import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LinkGreetings } from "./link-greetings.ts";

const HELLO_MS = 10_000;

let greetings: LinkGreetings;
let ended: string[];

beforeEach(() => {
  vi.useFakeTimers();
  greetings = new LinkGreetings({ helloMs: HELLO_MS, perNode: 2 });
  ended = [];
});
afterEach(() => {
  vi.useRealTimers();
});

const open = (nodeId: string, name: string) => greetings.open(nodeId, (bound) => void ended.push(`${name} ${bound}`));

test("ends a link that does not say hello in time, and no other", () => {
  open("a", "silent");
  open("b", "greeted").done();
  vi.advanceTimersByTime(HELLO_MS);
  expect(ended).toEqual(["silent link_hello"]);
  expect(greetings.nodes).toBe(0);
});

test("does not count the time of the server's response", () => {
  const slow = open("a", "slow");
  slow.answering();
  vi.advanceTimersByTime(2 * HELLO_MS);
  expect(ended).toEqual([]);
  slow.done();
  const refused = open("a", "refused");
  refused.answering();
  vi.advanceTimersByTime(2 * HELLO_MS);
  refused.refused();
  expect(ended).toEqual(["refused link_hello"]);
});

test("does not extend the time after a refused hello", () => {
  const link = open("a", "link");
  vi.advanceTimersByTime(HELLO_MS - 1);
  link.answering();
  link.refused();
  vi.advanceTimersByTime(1);
  expect(ended).toEqual(["link link_hello"]);
});

test("a third link of a node ends its oldest, and 200 of them count as one node", () => {
  open("b", "other");
  for (let n = 1; n <= 200; n++) open("a", `${n}`);
  expect(ended).toEqual(Array.from({ length: 198 }, (_, n) => `${n + 1} links_without_hello`));
  expect(greetings.nodes).toBe(2);
});
