import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { WriteBehind } from "./write-behind.ts";

/** A store whose transactions the test ends. */
class SlowStore {
  readonly begun: { readonly batch: readonly string[]; readonly end: (error?: Error) => void }[] = [];
  readonly written: string[] = [];
  atOnce = 0;
  mostAtOnce = 0;

  async write(batch: readonly string[]): Promise<void> {
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.atOnce);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.begun.push({ batch: [...batch], end: (error) => (error ? reject(error) : resolve()) });
    try {
      await promise;
      this.written.push(...batch);
    } finally {
      this.atOnce--;
    }
  }
}

const AWAY = new Error("the store is away");
const TAKEN = Object.assign(new Error("UNIQUE constraint failed"), { code: "SQLITE_CONSTRAINT_PRIMARYKEY" });

describe("the write-behind buffer", () => {
  let store: SlowStore;
  let writes: WriteBehind<string[]>;

  beforeEach(() => {
    vi.useFakeTimers();
    store = new SlowStore();
    writes = new WriteBehind<string[]>({
      newBatch: () => [],
      isEmpty: (batch) => batch.length === 0,
      write: (batch) => store.write(batch),
      clock: { monotonic: () => performance.now() },
      log: pino({ level: "silent" }),
      what: "words",
    });
  });
  afterEach(() => void vi.useRealTimers());

  const add = (...words: string[]): void => {
    for (const word of words) writes.add((batch) => void batch.push(word));
  };
  const soon = (): Promise<unknown> => vi.advanceTimersByTimeAsync(1000);
  const end = async (error?: Error): Promise<void> => {
    store.begun.at(-1)?.end(error);
    await soon();
  };

  test("collects changes while a transaction runs, and writes them in the next one", async () => {
    add("a", "b");
    await soon();
    add("c");
    add("d");
    await soon();
    expect(store.begun.map(({ batch }) => batch)).toEqual([["a", "b"]]);
    await end();
    expect(store.begun.map(({ batch }) => batch)).toEqual([
      ["a", "b"],
      ["c", "d"],
    ]);
  });

  test("is healthy while a transaction runs, and unhealthy from a failed one until one succeeds", async () => {
    add("a");
    await soon();
    expect(writes.isHealthy).toBe(true);
    await end(AWAY);
    expect(writes.isHealthy).toBe(false);
    await end();
    expect(writes.isHealthy).toBe(true);
    expect(store.written).toEqual(["a"]);
  });

  test("writes nothing newer before what failed earlier", async () => {
    add("a");
    await soon();
    add("b");
    await end(AWAY);
    expect(store.begun.at(-1)?.batch).toEqual(["a"]);
    await end();
    await end();
    expect(store.written).toEqual(["a", "b"]);
  });

  test("never runs two transactions at the same time, even when it is flushed meanwhile", async () => {
    add("a");
    await soon();
    add("b");
    const flushed = Promise.all([writes.flush(), writes.flush()]);
    add("c");
    await soon();
    expect(store.begun).toHaveLength(1);
    await end(AWAY);
    while (store.written.length < 3) await end();
    await flushed;
    expect(store.written).toEqual(["a", "b", "c"]);
    expect(store.mostAtOnce).toBe(1);
  });

  test("treats a commit whose response was lost as done", async () => {
    add("a");
    await soon();
    await end(AWAY);
    await end(TAKEN);
    expect(writes.isHealthy).toBe(true);
    add("b");
    await soon();
    await end();
    expect(store.written).toEqual(["b"]);
  });

  test("reports a store failure to the caller that flushes, and keeps the changes", async () => {
    add("a");
    const flushed = writes.flush().catch((error: unknown) => error);
    await soon();
    store.begun[0]?.end(AWAY);
    expect(await flushed).toBe(AWAY);
    await soon();
    await end();
    expect(store.written).toEqual(["a"]);
  });

  test("counts as failing when a change has waited for more than two seconds, even if no write has failed", async () => {
    add("a");
    await vi.advanceTimersByTimeAsync(2000);
    expect(writes.isHealthy).toBe(true);
    add("b");
    await vi.advanceTimersByTimeAsync(1);
    expect(writes.isHealthy).toBe(false);
    await end();
    expect(writes.isHealthy).toBe(true);
    await vi.advanceTimersByTimeAsync(2000);
    expect(writes.isHealthy).toBe(false);
    await end();
    expect({ healthy: writes.isHealthy, written: store.written }).toEqual({ healthy: true, written: ["a", "b"] });
  });

  test("writes everything left when it closes, and nothing on its own after that", async () => {
    add("a");
    await soon();
    add("b");
    const closed = writes.close();
    await end();
    await end();
    await closed;
    expect(store.written).toEqual(["a", "b"]);
    add("c");
    await soon();
    expect(store.begun).toHaveLength(2);
  });
});
