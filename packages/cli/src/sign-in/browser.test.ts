import { describe, expect, test } from "vitest";
import { browserCommand, browserOpener } from "./browser.ts";
import { isLoopback } from "./platform-address.ts";

describe("browserCommand", () => {
  test.each([
    ["a desktop", "linux", { DISPLAY: ":0" }, "xdg-open"],
    ["a Wayland desktop", "linux", { WAYLAND_DISPLAY: "wayland-0" }, "xdg-open"],
    ["a server", "linux", {}, null],
    ["a Mac", "darwin", {}, "open"],
    ["a Mac over SSH", "darwin", { SSH_CONNECTION: "192.0.2.1 1 192.0.2.2 22" }, null],
    ["another system", "win32", { DISPLAY: ":0" }, null],
  ] as const)("returns the command, if any, on %s", (...[, platform, env, command]) => {
    expect(browserCommand(env, platform)).toBe(command);
  });

  test("reports a machine without a browser", () => {
    expect(browserOpener({}, "linux")("https://a.example.org")).toBe(false);
  });
});

describe("isLoopback", () => {
  test.each([
    ["http://127.0.0.1:8080", true],
    ["http://127.9.9.9", true],
    ["http://[::1]:8080", true],
    ["http://localhost", true],
    ["http://a.localhost", true],
    ["http://127.0.0.1.example.org", false],
    ["http://localhost.example.org", false],
    ["http://192.168.0.7", false],
    ["http://[::ffff:10.0.0.1]", false],
  ])("%s is this machine: %s", (url, expected) => {
    expect(isLoopback(new URL(url))).toBe(expected);
  });
});
