import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { packBackup, unpackBackup } from "./backup-file.ts";
import { BACKUP_FORMAT, backupName, type Manifest, outdatedBackups } from "./manifest.ts";
import { parseTarHeader, tarHeader } from "./tar.ts";

const content = Buffer.alloc(200_001, "fairlead ");
const onProgress = (): void => undefined;
let dir: string;
let storeFile: string;
let target: string;
let manifest: Manifest;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-backup-"));
  storeFile = join(dir, "copy.db");
  target = join(dir, "one.tar.gz");
  writeFileSync(storeFile, content);
  manifest = {
    format: BACKUP_FORMAT,
    createdAt: "2026-03-02T10:11:12.345Z",
    program: { version: "0.1.0", commit: "development" },
    store: "sqlite",
    installationId: "ins_1",
    epoch: "epo_1",
    migrations: ["0001-initial"],
    masterKeyId: "abc",
    file: { name: "store.db", bytes: content.length, sha256: createHash("sha256").update(content).digest("hex") },
    alsoKeep: ["/etc/fairlead/config.yaml"],
  };
});
afterEach(() => rmSync(dir, { recursive: true }));

const pack = (): Promise<void> => packBackup({ manifest, storeFile, target, onProgress });
const folder = (name: string): string => {
  const made = join(dir, name);
  mkdirSync(made);
  return made;
};

describe("a backup file", () => {
  test("restores what was packed, and reports progress", async () => {
    const told: number[] = [];
    await packBackup({ manifest, storeFile, target, onProgress: (done) => told.push(done) });
    expect(told.at(-1)).toBe(content.length);
    const unpacked = await unpackBackup({ file: target, folder: folder("out"), onProgress });
    expect(unpacked.manifest).toEqual(manifest);
    expect(readFileSync(unpacked.storeFile).equals(content)).toBe(true);
  });

  test("is readable only by its owner, and opens with tar", async () => {
    await pack();
    expect(statSync(target).mode & 0o777).toBe(0o600);
    const out = folder("tar");
    execFileSync("tar", ["xzf", target, "-C", out]);
    expect(readdirSync(out).toSorted()).toEqual(["manifest.json", "store.db"]);
    expect(readFileSync(join(out, "store.db")).equals(content)).toBe(true);
  });

  test("that cannot be written leaves the previous one and no partial file", async () => {
    await pack();
    const before = readFileSync(target);
    manifest = { ...manifest, file: { ...manifest.file, bytes: content.length + 1 } };
    await expect(pack()).rejects.toMatchObject({ name: "StartError" });
    expect(readFileSync(target).equals(before)).toBe(true);
    expect(readdirSync(dir).toSorted()).toEqual(["copy.db", "one.tar.gz"]);
  });

  test("that is truncated at any point, or modified, is rejected", async () => {
    await pack();
    const whole = readFileSync(target);
    const plain = gunzipSync(whole);
    const changed = Buffer.from(plain);
    changed[100_000] = 0;
    const broken = [
      Buffer.alloc(0),
      Buffer.from("not a backup"),
      whole.subarray(0, 40),
      whole.subarray(0, whole.length - 30),
      gzipSync(changed),
      gzipSync(plain.subarray(0, 300)),
      gzipSync(plain.subarray(0, 150_000)),
      gzipSync(Buffer.alloc(1024)),
    ];
    for (const [at, bytes] of broken.entries()) {
      writeFileSync(target, bytes);
      await expect(unpackBackup({ file: target, folder: folder(`out${at}`), onProgress }), `${at}`).rejects.toThrow(
        /is not a complete backup: .*Nothing was changed/,
      );
    }
  });

  test("that does not exist is rejected with a clear message", async () => {
    const missing = unpackBackup({ file: join(dir, "none"), folder: folder("out"), onProgress });
    await expect(missing).rejects.toThrow(/ENOENT/);
    expect(existsSync(join(dir, "out", "store.db"))).toBe(false);
  });
});

test("a tar header holds sizes above eight gigabytes", () => {
  for (const bytes of [0, 1, 8 * 2 ** 30 - 1, 8 * 2 ** 30, 5 * 2 ** 40]) {
    expect(parseTarHeader(tarHeader({ name: "store.db", bytes }, 0))).toEqual({ name: "store.db", bytes });
  }
});

test("only the oldest of an installation's own backups count as outdated", () => {
  const names = [1, 2, 3].map((second) => backupName("ins_aaaaaaaa", `2026-03-02T10:11:0${second}.000Z`));
  const others = [backupName("ins_bbbbbbbb", "2020-01-01T00:00:00.000Z"), "fairlead-aaaaaaaa-notes.txt", "x"];
  expect(names[0]).toBe("fairlead-aaaaaaaa-20260302T101101Z.tar.gz");
  expect(outdatedBackups([...others, ...names], "ins_aaaaaaaa", 2)).toEqual([names[0]]);
  expect(outdatedBackups([...others, ...names], "ins_aaaaaaaa", 3)).toEqual([]);
});
