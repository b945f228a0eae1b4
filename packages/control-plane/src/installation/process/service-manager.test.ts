import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { loadConfig } from "../config/config.ts";
import { stopBoundMs, stopMsOf } from "../stop/stop-watch.ts";
import { tellServiceManager } from "./service-manager.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fairlead-notify-"));
  const tool = join(folder, "systemd-notify");
  writeFileSync(tool, `#!/bin/sh\nprintf '%s\\n' "$@" >>${folder}/told\n`);
  chmodSync(tool, 0o755);
  vi.stubEnv("PATH", `${folder}:${process.env["PATH"]}`);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const told = (): string[] =>
  existsSync(join(folder, "told")) ? readFileSync(join(folder, "told"), "utf8").trim().split("\n") : [];

test("systemd is notified of the start, of the server's liveness, and of the stop", async () => {
  const { stopping, stopped } = tellServiceManager({ listens: true, watchdogMs: 20 });
  await vi.waitFor(() => expect(told()).toContain("WATCHDOG=1"));
  expect(told()).toContain("READY=1");
  expect(told()).not.toContain("STOPPING=1");
  stopping(35_000);
  await vi.waitFor(() => expect(told()).toContain("EXTEND_TIMEOUT_USEC=35000000"));
  expect(told()).toContain("STOPPING=1");
  const fed = told().length;
  await vi.waitFor(() => expect(told().length).toBeGreaterThan(fed));
  stopped();
});

test("the unit allows enough time for a stop with default settings", () => {
  const unit = readFileSync(new URL("../../../../../systemd/fairlead-control-plane.service", import.meta.url), "utf8");
  const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]);
  const { server } = loadConfig({ env: { NOTIFY_SOCKET: "/run/systemd/notify" } });
  expect(server.lameDuckSeconds).toBe(10);
  expect(seconds * 1000).toBeGreaterThan(stopBoundMs(stopMsOf(server)));
});

test("no notification is sent when systemd does not listen", async () => {
  const { stopping, stopped } = tellServiceManager({ listens: false, watchdogMs: null });
  stopping(35_000);
  stopped();
  // What would have been told comes before this.
  tellServiceManager({ listens: true, watchdogMs: null });
  await vi.waitFor(() => expect(told()).toEqual(["READY=1"]));
});
