import { DomainError } from "@fairlead/protocol/errors";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import { type LiveCall, LiveCalls } from "./live-calls.ts";

const live = new LiveCalls(new TestClock(), 60_000);

afterEach(() => live.stop());

class CountedCall implements LiveCall {
  place = -1;
  readonly connection = null;
  checks = 0;
  readonly failures: DomainError[] = [];
  onCheck: () => void = () => undefined;

  check(): void {
    this.checks++;
    this.onCheck();
  }

  fail(error: DomainError): void {
    this.failures.push(error);
  }
}

test("a sweep checks exactly the calls that were added and not deleted, in whatever order they end", () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 9 }), { maxLength: 60 }), (toggles) => {
      const some = new LiveCalls(new TestClock(), 60_000);
      const calls = Array.from({ length: 10 }, () => new CountedCall());
      const alive = new Set<LiveCall>();
      for (const index of toggles) {
        const call = calls[index] ?? new CountedCall();
        if (alive.delete(call)) some.delete(call);
        else {
          alive.add(call);
          some.add(call);
        }
      }
      some.sweep();
      some.stop();
      for (const call of calls) expect(call.checks).toBe(alive.has(call) ? 1 : 0);
    }),
  );
});

test("a call that ends during its check does not hide others", () => {
  const some = new LiveCalls(new TestClock(), 60_000);
  const calls = Array.from({ length: 5 }, () => new CountedCall());
  for (const call of calls) {
    call.onCheck = () => some.delete(call);
    some.add(call);
  }
  some.sweep();
  some.sweep();
  some.stop();
  expect(calls.map(({ checks }) => checks)).toEqual([1, 1, 1, 1, 1]);
});

test("deleting a call twice does not affect others", () => {
  const [first, second] = [new CountedCall(), new CountedCall()];
  live.add(first);
  live.add(second);
  live.delete(first);
  live.delete(first);
  const error = new DomainError("unavailable", "stopping");
  live.failAll(error);
  expect(first.failures).toEqual([]);
  expect(second.failures).toEqual([error]);
});
