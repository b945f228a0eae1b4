import { execFileSync, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { diskFiles } from "../state/files.ts";
import { silentLog } from "../testing/silent-log.ts";
import { diskFolders, type FolderLayer } from "./folder-layer.ts";
import { installedAs } from "./install-layout.ts";
import { openUpdates } from "./open-updates.ts";
import { TRIAL_STARTS } from "./trial-rules.ts";
import { type Trial, updateRecordIn } from "./update-record.ts";
import { VersionsFolder } from "./versions-folder.ts";

const SHA = "cd".repeat(32);
let folder: string;
let root: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fairlead-versions-"));
  root = join(folder, "opt");
  for (const version of ["0.9.0", "1.0.0"]) {
    mkdirSync(join(root, "versions", version, "bin"), { recursive: true });
    writeFileSync(join(root, "versions", version, "bin/fairlead-daemon"), version);
  }
  symlinkSync("versions/1.0.0", join(root, "current"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const versions = (version = "1.0.0", folders: FolderLayer = diskFolders): VersionsFolder =>
  new VersionsFolder({ root, version }, folders);
const current = (): string => readlinkSync(join(root, "current"));

function archive(): string {
  const content = join(folder, "content");
  mkdirSync(join(content, "bin"), { recursive: true });
  writeFileSync(join(content, "bin/fairlead-daemon"), "2.0.0", { mode: 0o755 });
  const file = join(folder, "build.tar.gz");
  execFileSync("tar", ["-czf", file, "-C", content, "."]);
  return file;
}

/** Runs the guard like systemd does before each start. */
function preStart(): void {
  const script = join(root, "trial/guard.sh");
  if (existsSync(script)) expect(spawnSync("/bin/sh", [script]).status).toBe(0);
}

test("a program knows its version's folder, and a checkout knows that it has none", () => {
  expect(installedAs("/opt/fairlead-daemon/versions/1.2.3/lib/daemon.js")).toEqual({
    root: "/opt/fairlead-daemon",
    version: "1.2.3",
  });
  expect(installedAs("/home/ann/fairlead/packages/daemon/src/daemon.ts")).toBeNull();
});

test("a version is placed as a whole, in place of a partial one or one from another archive", async () => {
  mkdirSync(join(root, "versions/2.0.0"));
  expect(await versions().holds("2.0.0", SHA)).toBe(false);
  await versions().place("2.0.0", { archive: archive(), sha256: SHA });
  expect(await versions().holds("2.0.0", SHA)).toBe(true);
  expect(await versions().holds("2.0.0", "ef".repeat(32))).toBe(false);
  expect(execFileSync("cat", [versions().program("2.0.0")], { encoding: "utf8" })).toBe("2.0.0");
  expect(current()).toBe("versions/1.0.0");
});

test("a file that is not an archive leaves no version, and the error says so", async () => {
  const file = join(folder, "broken.tar.gz");
  writeFileSync(file, "no tar");
  await expect(versions().place("2.0.0", { archive: file, sha256: SHA })).rejects.toThrow("the archive is incomplete");
  expect(existsSync(join(root, "versions/2.0.0"))).toBe(false);
});

describe("the guard", () => {
  const begin = async (): Promise<void> => {
    await versions().place("2.0.0", { archive: archive(), sha256: SHA });
    await versions().guard("2.0.0");
    await versions().switchTo("2.0.0");
  };

  test("lets a version on trial start a few times, then turns back, and stays back", async () => {
    await begin();
    for (let start = 0; start < TRIAL_STARTS; start++) {
      preStart();
      expect(current()).toBe("versions/2.0.0");
      expect(await versions().hasTurnedBack()).toBe(false);
    }
    preStart();
    expect(current()).toBe("versions/1.0.0");
    expect(await versions().hasTurnedBack()).toBe(true);
    preStart();
    expect(current()).toBe("versions/1.0.0");
  });

  test("does nothing while another version is current", async () => {
    await versions().guard("2.0.0");
    for (let start = 0; start < 2 * TRIAL_STARTS; start++) preStart();
    expect(current()).toBe("versions/1.0.0");
    expect(await versions().hasTurnedBack()).toBe(false);
  });

  test("is not needed by a version on trial that turns back by itself", async () => {
    await begin();
    await versions("2.0.0").turnBack("1.0.0");
    expect([current(), await versions().hasTurnedBack()]).toEqual(["versions/1.0.0", true]);
    await versions().dropGuard();
    expect(await versions().hasTurnedBack()).toBe(false);
    await versions().switchTo("2.0.0");
    await versions("2.0.0").turnBack("1.0.0");
    expect(current()).toBe("versions/1.0.0");
  });
});

test("only the running version, the previous one and the current one are kept", async () => {
  await versions().place("2.0.0", { archive: archive(), sha256: SHA });
  await versions().downloadFile(SHA);
  mkdirSync(join(root, "versions/3.0.0.half"));
  await versions("2.0.0").tidy(["1.0.0"]);
  expect(readdirSync(join(root, "versions")).toSorted()).toEqual(["1.0.0", "2.0.0"]);
  expect(existsSync(join(root, "downloads"))).toBe(false);
});

class Killed extends Error {}

/** Stops the program before its n-th file system effect. */
function killedAfter(effects: number): FolderLayer {
  let left = effects;
  const cut =
    <A extends unknown[], R>(effect: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      if (left === 0) throw new Killed();
      left -= 1;
      return effect(...args);
    };
  const folders: FolderLayer = {
    ...diskFolders,
    makeFolder: cut((path: string) => diskFolders.makeFolder(path)),
    write: cut((path: string, text: string) => diskFolders.write(path, text)),
    link: cut((target: string, path: string) => diskFolders.link(target, path)),
    rename: cut((from: string, to: string) => diskFolders.rename(from, to)),
    remove: cut((path: string) => diskFolders.remove(path)),
    unpack: cut((file: string, into: string) => diskFolders.unpack(file, into)),
    flush: cut((path: string) => diskFolders.flush(path)),
  };
  return folders;
}

describe("a program that is killed at any point of a switch to another version", () => {
  const state = (): string => join(folder, "state");
  const trial: Trial = { from: "1.0.0", to: "2.0.0", request: "r", before: { link: true, engine: true }, failed: null };

  /** What systemd would start: the version and whether it is on trial. */
  async function startNow(): Promise<{ version: string; kind: string; guarded: boolean }> {
    preStart();
    const version = current().replace("versions/", "");
    expect(existsSync(join(root, "versions", version, "bin/fairlead-daemon"))).toBe(true);
    const opened = await openUpdates({
      files: diskFiles,
      folders: diskFolders,
      stateDir: state(),
      installed: { root, version },
      now: "now",
      log: silentLog,
    });
    return { version, kind: opened.start.kind, guarded: existsSync(join(root, "trial/guard.sh")) };
  }

  const outcomes: string[] = [];
  const effectsOf = 40;

  test.each(Array.from({ length: effectsOf }, (_, n) => n))(
    "after %i effects leaves a version that starts",
    async (n) => {
      await diskFiles.makeFolder(state());
      const dying = versions("1.0.0", killedAfter(n));
      const record = updateRecordIn(diskFiles, state());
      const handOver = async (): Promise<void> => {
        await dying.place("2.0.0", { archive: archive(), sha256: SHA });
        await dying.guard("2.0.0");
        await record.save({ trial, last: null });
        await dying.switchTo("2.0.0");
      };
      await handOver().catch((error: unknown) => expect(error).toBeInstanceOf(Killed));
      const found = await startNow();
      outcomes.push(`${found.version} ${found.kind}`);
      // The new version never runs without a guard.
      if (found.version === "2.0.0") expect(found).toEqual({ version: "2.0.0", kind: "on-trial", guarded: true });
      else expect(found).toEqual({ version: "1.0.0", kind: "settled", guarded: false });
    },
  );

  test("reaches both outcomes", () => {
    expect(new Set(outcomes)).toEqual(new Set(["1.0.0 settled", "2.0.0 on-trial"]));
  });
});

describe("a version on trial that is killed at any point while it turns back", () => {
  test.each([0, 1, 2, 3, 4])(
    "after %i effects leaves the previous version running in the end, which knows the reason",
    async (n) => {
      const stateDir = join(folder, "state");
      await diskFiles.makeFolder(stateDir);
      await versions().place("2.0.0", { archive: archive(), sha256: SHA });
      await versions().guard("2.0.0");
      await versions().switchTo("2.0.0");
      const record = updateRecordIn(diskFiles, stateDir);
      const before = { link: true, engine: true };
      await record.save({ trial: { from: "1.0.0", to: "2.0.0", request: "r", before, failed: "no link" }, last: null });
      await versions("2.0.0", killedAfter(n))
        .turnBack("1.0.0")
        .catch((error: unknown) => expect(error).toBeInstanceOf(Killed));
      for (let start = 0; current() !== "versions/1.0.0"; start++) {
        expect(start).toBeLessThan(TRIAL_STARTS + 1);
        preStart();
      }
      const opened = await openUpdates({
        files: diskFiles,
        folders: diskFolders,
        stateDir,
        installed: { root, version: "1.0.0" },
        now: "now",
        log: silentLog,
      });
      expect(opened.start).toMatchObject({ rolledBack: { wanted: "2.0.0", message: "no link", state: "rolled_back" } });
      expect((await record.load()).value).toMatchObject({ trial: null, last: { state: "rolled_back" } });
      expect(existsSync(join(root, "trial"))).toBe(false);
    },
  );
});
