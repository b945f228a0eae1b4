import { spawnSync } from "node:child_process";
import { formatBootstrapToken } from "@fairlead/protocol/enrollment";
import { expect, test } from "vitest";
import { renderUserData } from "./user-data.ts";

const bootstrapToken = formatBootstrapToken({
  url: "https://fairlead.example.com",
  nodeId: "nod_01kc3b6q2v8r5x0m7n4t9w1yza",
  secret: "s".repeat(43),
  build: { version: "1.2.3-field.20260101", sha256: { x64: "ab".repeat(32), arm64: "cd".repeat(32) } },
});

test.each(["https://fairlead.example.com", "http://10.0.0.1:8080", "https://example.com/it's;$(reboot)`x`"])(
  "is a shell script within every provider's limit for %s",
  (publicUrl) => {
    const script = renderUserData({ publicUrl, bootstrapToken, insecure: true });
    expect(script.startsWith("#!/bin/sh\n")).toBe(true);
    expect(Buffer.byteLength(script)).toBeLessThan(16 * 1024);
    expect(spawnSync("sh", ["-n"], { input: script })).toMatchObject({ status: 0 });
    const url = /--output "\$folder\/install\.sh" (.*) &&$/m.exec(script)?.[1] ?? "";
    expect(spawnSync("sh", ["-c", `printf %s ${url}`]).stdout.toString()).toBe(`${publicUrl}/install.sh`);
  },
);

test("passes the token in a file that only root can read, never as an argument", () => {
  const script = renderUserData({ publicUrl: "https://fairlead.example.com", bootstrapToken, insecure: false });
  const lines = script.split("\n");
  expect(lines.filter((line) => line.includes("flb_"))).toEqual([bootstrapToken]);
  expect(script).toContain("umask 077");
  expect(script).not.toContain("--insecure");
  expect(script).toContain("--proto =https");
});
