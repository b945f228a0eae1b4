import {
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SecretFolders } from "./secret-folders.ts";

const me = process.getuid?.() ?? 0;
const bytes = (text: string) => new TextEncoder().encode(text);
let base: string;
let folders: SecretFolders;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "fairlead-secrets-"));
  folders = new SecretFolders(join(base, "made", "later"));
});
afterEach(() => rmSync(base, { recursive: true }));

const fill = (files: Record<string, string>, owner = me) =>
  folders.fill("c1", { owner, files: new Map(Object.entries(files).map(([name, value]) => [name, bytes(value)])) });
const path = (name: string) => join(folders.pathOf("c1"), name);

describe("folders of opened secrets", () => {
  test("hold exact bytes, readable only by their owner", async () => {
    await fill({ TOKEN: "a\nb\n\n", "tls.key": "\u{1f511}\0" });
    expect(readFileSync(path("TOKEN"), "utf8")).toBe("a\nb\n\n");
    expect(readFileSync(path("tls.key"), "utf8")).toBe("\u{1f511}\0");
    expect(statSync(path("TOKEN")).mode & 0o777).toBe(0o400);
    expect(statSync(folders.pathOf("c1")).mode & 0o777).toBe(0o700);
    expect(statSync(folders.root).mode & 0o777).toBe(0o700);
  });

  test("replace a changed file as a whole: a reader of the old file reads it to its end", async () => {
    await fill({ TOKEN: "old value", SAME: "x" });
    const folder = statSync(folders.pathOf("c1")).ino;
    const same = statSync(path("SAME")).ino;
    const held = openSync(path("TOKEN"), "r");
    await fill({ TOKEN: "new", SAME: "x" });
    const read = Buffer.alloc(64);
    expect(read.toString("utf8", 0, readSync(held, read))).toBe("old value");
    expect(readFileSync(path("TOKEN"), "utf8")).toBe("new");
    expect(statSync(path("SAME")).ino).toBe(same);
    // A mount follows the folder, not its path.
    expect(statSync(folders.pathOf("c1")).ino).toBe(folder);
  });

  test("lose unwanted files, and files that a crash or someone else left there", async () => {
    await fill({ TOKEN: "a", OLD: "b" });
    writeFileSync(path(".TOKEN"), "half");
    writeFileSync(path("stranger"), "x");
    await fill({ TOKEN: "c" });
    expect(readdirSync(folders.pathOf("c1"))).toEqual(["TOKEN"]);
    expect(readFileSync(path("TOKEN"), "utf8")).toBe("c");
  });

  test.skipIf(me !== 0)("belong to the container's user, even after the user changes", async () => {
    await fill({ TOKEN: "a" }, 1000);
    expect([statSync(path("TOKEN")).uid, statSync(folders.pathOf("c1")).uid]).toEqual([1000, 1000]);
    await fill({ TOKEN: "a" }, 2000);
    expect([statSync(path("TOKEN")).uid, statSync(folders.pathOf("c1")).uid]).toEqual([2000, 2000]);
  });

  test("are created when they are needed, listed, and removed as a whole", async () => {
    expect(await folders.list()).toEqual([]);
    expect(existsSync(folders.root)).toBe(false);
    await folders.make("c2");
    await fill({ TOKEN: "a" });
    expect((await folders.list()).toSorted()).toEqual(["c1", "c2"]);
    await folders.remove("c1");
    await folders.remove("c1");
    expect(await folders.list()).toEqual(["c2"]);
  });

  test("report whether they are in memory", async () => {
    expect(await folders.inMemory()).toBe(true);
    await fill({ TOKEN: "a" });
    const onDisk = new SecretFolders("/usr");
    expect(await onDisk.inMemory()).toBe(false);
    if (existsSync("/dev/shm")) expect(await new SecretFolders("/dev/shm").inMemory()).toBe(true);
  });
});
