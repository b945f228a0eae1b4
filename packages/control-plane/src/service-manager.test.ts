import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { tellServiceManager } from "./service-manager.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fairlead-notify-"));
  const tool = join(folder, "systemd-notify");
  writeFileSync(tool, `#!/bin/sh\necho "$1" >>${folder}/told\n`);
  chmodSync(tool, 0o755);
  vi.stubEnv("PATH", `${folder}:${process.env["PATH"]}`);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const told = (): string[] =>
  existsSync(join(folder, "told")) ? readFileSync(join(folder, "told"), "utf8").trim().split("\n") : [];

test("systemd is told of the start, of the server's life, and of the stop", async () => {
  const { stopping, stopped } = tellServiceManager({ listens: true, watchdogMs: 20 });
  await vi.waitFor(() => expect(told()).toContain("WATCHDOG=1"));
  expect(told()).toContain("READY=1");
  expect(told()).not.toContain("STOPPING=1");
  stopping();
  await vi.waitFor(() => expect(told()).toContain("STOPPING=1"));
  const fed = told().length;
  await vi.waitFor(() => expect(told().length).toBeGreaterThan(fed));
  stopped();
});

test("nobody is told where systemd does not listen", async () => {
  const { stopping, stopped } = tellServiceManager({ listens: false, watchdogMs: null });
  stopping();
  stopped();
  // What would have been told comes before this.
  tellServiceManager({ listens: true, watchdogMs: null });
  await vi.waitFor(() => expect(told()).toEqual(["READY=1"]));
});
