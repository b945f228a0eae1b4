import { expect, test } from "vitest";
import { serviceManagerOf } from "./service-manager.ts";

const NOBODY = { listens: false, watchdogMs: null };

test("without systemd there is no service manager to notify", () => {
  expect(serviceManagerOf({}, 7)).toEqual(NOBODY);
  expect(serviceManagerOf({ NOTIFY_SOCKET: "", WATCHDOG_USEC: "1000000" }, 7)).toEqual(NOBODY);
});

test("a watchdog applies only to the process that it names, not to others that inherit its variables", () => {
  const env = { NOTIFY_SOCKET: "/run/systemd/notify", WATCHDOG_USEC: "120000000" };
  expect(serviceManagerOf(env, 7)).toEqual({ listens: true, watchdogMs: 120_000 });
  expect(serviceManagerOf({ ...env, WATCHDOG_PID: "7" }, 7)).toEqual({ listens: true, watchdogMs: 120_000 });
  expect(serviceManagerOf({ ...env, WATCHDOG_PID: "8" }, 7)).toEqual({ listens: true, watchdogMs: null });
});

test.each(["0", "-5", "soon", undefined])("a watchdog limit of %s is ignored", (WATCHDOG_USEC) => {
  expect(serviceManagerOf({ NOTIFY_SOCKET: "@x", WATCHDOG_USEC }, 7)).toEqual({ listens: true, watchdogMs: null });
});
