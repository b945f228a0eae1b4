import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { checkArchive } from "./check-archive.ts";

let folder: string;
let content: string;
let archive: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fairlead-archive-"));
  content = join(folder, "content");
  archive = join(folder, "build.tar.gz");
  mkdirSync(join(content, "bin"), { recursive: true });
  writeFileSync(join(content, "bin/fairlead-daemon"), "x", { mode: 0o755 });
});
afterEach(() => rmSync(folder, { recursive: true }));

const pack = (...more: readonly string[]): void => {
  execFileSync("tar", ["-czf", archive, "-C", content, ...more, "."], { stdio: "ignore" });
};
const inside = (name: string): string => join(content, name);

describe("a build archive", () => {
  test("may contain files and folders with any names", async () => {
    writeFileSync(inside("a name\nwith -> everything"), "x");
    pack();
    await expect(checkArchive(archive)).resolves.toBeUndefined();
  });

  test.each<[string, () => void]>([
    ["a symbolic link", () => symlinkSync("/etc/passwd", inside("link"))],
    ["a hard link", () => execFileSync("ln", [inside("bin/fairlead-daemon"), inside("hard")])],
    ["a pipe", () => execFileSync("mkfifo", [inside("pipe")])],
    ["a setuid program", () => execFileSync("chmod", ["4755", inside("bin/fairlead-daemon")])],
  ])("is rejected with %s", async (_, spoil) => {
    spoil();
    pack();
    await expect(checkArchive(archive)).rejects.toThrow("not a file or folder");
  });

  test.each([
    ["/etc/cron.d/x", "s,^\\./bin/fairlead-daemon,/etc/cron.d/x,"],
    ["../../x", "s,^\\./bin/fairlead-daemon,../../x,"],
  ])("is rejected with the name %s", async (_, rename) => {
    pack("--absolute-names", `--transform=${rename}`);
    await expect(checkArchive(archive)).rejects.toThrow("outside its folder");
  });

  test("is rejected if it would unpack to too much data or too many files", async () => {
    writeFileSync(inside("zeros"), "");
    truncateSync(inside("zeros"), 20_000_000);
    for (let i = 0; i < 30; i += 1) writeFileSync(inside(`f${i}`), "");
    pack();
    expect(readFileSync(archive).length).toBeLessThan(100_000);
    await expect(checkArchive(archive, { maxEntries: 100, maxBytes: 10_000_000 })).rejects.toThrow("10000000 bytes");
    await expect(checkArchive(archive, { maxEntries: 10, maxBytes: 100_000_000 })).rejects.toThrow("10 files");
  });

  test("is rejected if it is truncated, or not an archive", async () => {
    writeFileSync(inside("noise"), Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * 7919) % 251)));
    pack();
    truncateSync(archive, 200);
    await expect(checkArchive(archive)).rejects.toThrow("the archive is incomplete");
    writeFileSync(archive, "no tar");
    await expect(checkArchive(archive)).rejects.toThrow("the archive is incomplete");
  });
});
