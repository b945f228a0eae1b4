import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createStore } from "../admin/new-installation.fixture.ts";
import { Running } from "../admin/running.fixture.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { openLocalOperations } from "../operations/local-operations.ts";
import { createLog } from "./log.ts";
import { LogLevelSwitch } from "./log-level.ts";

function written(): { readonly log: ReturnType<typeof createLog>; readonly lines: string[] } {
  const lines: string[] = [];
  const log = createLog({ level: "warn", destination: { write: (line) => void lines.push(line) } });
  return { log, lines };
}

describe("the log level", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  test("takes effect immediately, until it is changed again", () => {
    const { log, lines } = written();
    const level = new LogLevelSwitch(log);
    level.set("debug", null);
    log.debug("here");
    level.set("error", null);
    log.warn("not here");
    expect(lines.filter((line) => /here/.test(line))).toEqual([expect.stringContaining('"here"')]);
  });

  test("returns to the configured level when the duration of the last change ends", () => {
    const { log } = written();
    const level = new LogLevelSwitch(log);
    level.set("trace", 10);
    level.set("debug", 600);
    vi.advanceTimersByTime(599_000);
    expect(log.level).toBe("debug");
    vi.advanceTimersByTime(1000);
    expect(log.level).toBe("warn");
  });
});

describe("through the admin socket", () => {
  let dir: string;
  let config: Config;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "fairlead-level-"));
    config = loadConfig({ env: { FAIRLEAD_DATA_DIR: join(dir, "data") } });
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  test("the running server's log level is changed, and the change is recorded", async () => {
    const server = await Running.start(config);
    const answer = await openLocalOperations(config).setLogLevel({ level: "error", seconds: 60 });
    expect(answer).toMatchObject({ level: "error", configured: "silent", until: expect.any(String) as string });
    const events = await server.installation.db.selectFrom("audit_event").select(["action", "detail"]).execute();
    expect(events).toContainEqual({
      action: "admin.log_level",
      detail: JSON.stringify({ level: "error", seconds: 60 }),
    });
    await expect(
      openLocalOperations(config).setLogLevel({ level: "loud" as never, seconds: null }),
    ).rejects.toMatchObject({
      code: "invalid_request",
    });
    await server.stop();
  });

  test("a change without a server is rejected with a clear message", async () => {
    await createStore(config);
    const change = openLocalOperations(config).setLogLevel({ level: "debug", seconds: null });
    await expect(change).rejects.toThrow(/No server is running on/);
  });
});
