import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { renderInstallScript } from "./install-script.ts";

const TEMPLATE = "url='@PLATFORM_URL@'\nversion='@OFFERED_VERSION@'\nprintf '%s|%s' \"$url\" \"$version\"\n";

function runRendered(publicUrl: string, version: string | null): string {
  const build = version === null ? null : { version, sha256: {} };
  return execFileSync("sh", ["-c", renderInstallScript(TEMPLATE, { publicUrl, build })], { encoding: "utf8" });
}

test("the shell reads exactly the platform's address and the version", () => {
  expect(runRendered("https://platform.example:8443/fairlead", "1.2.3")).toBe(
    "https://platform.example:8443/fairlead|1.2.3",
  );
  expect(runRendered("https://platform.example", null)).toBe("https://platform.example|");
});

test.each(["https://a/'; touch /tmp/x; '", "https://a/$(id)`id`\\", "https://a/$&$'", "https://a/\n#"])(
  "an address is always a single word to the shell: %j",
  (publicUrl) => {
    expect(runRendered(publicUrl, "1")).toBe(`${publicUrl}|1`);
  },
);
