import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLog } from "../process/log.ts";
import { openDatabase } from "./open.ts";
import { type Statement, StatementWatch } from "./statement-watch.ts";

describe("the statement watch", () => {
  const slow = { sql: "select ?", milliseconds: 5.1, handle: "main", blocking: true } as const;
  let logged: string[];
  let clock: TestClock;
  let watch: StatementWatch;
  beforeEach(() => {
    logged = [];
    clock = new TestClock();
    const log = createLog({ level: "warn", destination: { write: (line) => void logged.push(line) } });
    watch = new StatementWatch({ log, clock });
  });

  test("warns once a minute of a statement that blocked the main thread", () => {
    watch.observe(slow);
    watch.observe(slow);
    expect(logged).toHaveLength(1);
    expect(JSON.parse(logged[0] ?? "")).toMatchObject({ sql: "select ?", milliseconds: 5.1 });
    clock.advance(60_000);
    watch.observe(slow);
    expect(logged).toHaveLength(2);
    expect(watch.times.main.count).toBe(3);
  });

  test("does not warn of a statement that is fast or runs elsewhere", () => {
    watch.observe({ ...slow, milliseconds: 5 });
    watch.observe({ ...slow, handle: "long", blocking: false });
    expect(logged).toEqual([]);
    expect(watch.times.long.count).toBe(1);
  });
});

describe("an opened store", () => {
  const dir = mkdtempSync(join(tmpdir(), "fairlead-watch-"));
  afterEach(() => rmSync(dir, { recursive: true }));

  test("reports every statement on both handles, including failed ones, and never a value", async () => {
    const seen: Statement[] = [];
    const store = openDatabase(
      { file: join(dir, "store.db") },
      { onStatement: (statement) => void seen.push(statement) },
    );
    await sql`select ${"a secret"} as a`.execute(store.db);
    await sql`select ${"a secret"} as b`.execute(store.longReads);
    await expect(sql`select nothing`.execute(store.db)).rejects.toThrow();
    await store.close();
    expect(seen.map(({ sql: text, handle, blocking }) => [text, handle, blocking])).toEqual([
      ["select ? as a", "main", true],
      ["select ? as b", "long", false],
      ["select nothing", "main", true],
    ]);
    expect(JSON.stringify(seen)).not.toContain("a secret");
  });
});
