import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { WantedDaemon } from "@fairlead/protocol/daemon-updates";
import { NO_PROXIES } from "@fairlead/wire/proxy/proxy-rules";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { DiskSpace } from "../host/disk-rules.ts";
import { diskFiles } from "../state/files.ts";
import { silentLog } from "../testing/silent-log.ts";
import { aWantedDaemon } from "../testing/wanted.ts";
import { diskFolders, type FolderLayer } from "./folder-layer.ts";
import { STEPS, type StepName } from "./update-plan.ts";
import { updateRecordIn } from "./update-record.ts";
import { type UpdateSteps, type UpdateStepsDeps, updateSteps } from "./update-steps.ts";
import { VersionsFolder } from "./versions-folder.ts";

/** A shell script in place of a version's program. */
const GOOD = 'case $1 in --version) echo "2.0.0 (abc)" ;; check) echo "$@" >"$(dirname "$0")/checked" ;; esac';
const GIBIBYTE = 1024 ** 3;

let folder: string;
let root: string;
let server: Server;
let content: Buffer;
let space: DiskSpace | null;
let quiet: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "fairlead-steps-"));
  root = join(folder, "opt");
  mkdirSync(join(root, "versions/1.0.0"), { recursive: true });
  mkdirSync(join(folder, "state"));
  symlinkSync("versions/1.0.0", join(root, "current"));
  space = { totalBytes: 100 * GIBIBYTE, freeBytes: 50 * GIBIBYTE };
  quiet = 0;
  content = tarOf(GOOD);
  server = createServer((_request, response) => void response.end(content));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

function tarOf(script: string): Buffer {
  const build = mkdtempSync(join(folder, "build-"));
  mkdirSync(join(build, "bin"));
  writeFileSync(join(build, "bin/fairlead-daemon"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  execFileSync("tar", ["-czf", join(build, "tar"), "-C", build, "./bin"]);
  return readFileSync(join(build, "tar"));
}

function wanted(): WantedDaemon {
  const sha256 = createHash("sha256").update(content).digest("hex");
  return aWantedDaemon({ files: [{ arch: "x64", path: "/build", sha256, bytes: content.length }] });
}

const record = () => updateRecordIn(diskFiles, join(folder, "state"));
function steps(changes: Partial<UpdateStepsDeps> = {}, folders: FolderLayer = diskFolders): UpdateSteps {
  return updateSteps({
    versions: new VersionsFolder({ root, version: "1.0.0" }, folders),
    record: record(),
    platformUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    proxies: NO_PROXIES,
    arch: "x64",
    readSpace: async () => space,
    checkFlags: ["--state-dir", "/state"],
    works: () => ({ link: true, engine: false }),
    whenQuiet: async () => {
      quiet += 1;
    },
    log: silentLog,
    ...changes,
  });
}

const context = { signal: new AbortController().signal, onPercent: () => undefined };
async function take(until: StepName, from: UpdateSteps = steps()) {
  for (const step of STEPS) {
    const problem = await from[step](wanted(), context);
    if (problem !== null || step === until) return problem;
  }
  return null;
}

describe("the steps of an update", () => {
  test("fetch, place and check a version, and hand over to it on trial in a quiet moment", async () => {
    expect(await take("restarting")).toBeNull();
    expect(readlinkSync(join(root, "current"))).toBe("versions/2.0.0");
    expect(readFileSync(join(root, "versions/2.0.0/bin/checked"), "utf8")).toBe("check --state-dir /state\n");
    const before = { link: true, engine: false };
    expect((await record().load()).value).toEqual({
      trial: { from: "1.0.0", to: "2.0.0", request: "node:1", before, failed: null },
      last: null,
    });
    expect(existsSync(join(root, "trial/guard.sh"))).toBe(true);
    expect(quiet).toBe(1);
  });

  test("fetch nothing that already exists", async () => {
    await take("unpacking");
    expect(await take("checking", steps({ platformUrl: "http://127.0.0.1:9" }))).toBeNull();
  });

  test("fetch nothing while disk space is short, and keep what there was", async () => {
    space = { totalBytes: 100 * GIBIBYTE, freeBytes: GIBIBYTE };
    expect(await take("downloading")).toMatchObject({
      reason: "no_room",
      message: expect.stringMatching(/^daemon version 2\.0\.0 was not downloaded: too little disk space/) as string,
    });
    expect(existsSync(join(root, "versions/2.0.0"))).toBe(false);
  });

  test("report that there is no room if unpacking finds none", async () => {
    const unpack = () => Promise.reject(new Error("tar: bin/node: Cannot write: No space left on device"));
    expect(await take("unpacking", steps({}, { ...diskFolders, unpack }))).toMatchObject({ reason: "no_room" });
    expect(readlinkSync(join(root, "current"))).toBe("versions/1.0.0");
  });

  test("discard a file with another hash, so that the next attempt fetches it again", async () => {
    const honest = wanted();
    const good = content;
    content = Buffer.from(good);
    content[50] = (content[50] ?? 0) ^ 1;
    expect(await steps().downloading(honest, context)).toMatchObject({ reason: "bad_download" });
    content = good;
    expect(await steps().downloading(honest, context)).toBeNull();
  });

  test.each([
    { script: 'echo "3.0.0 (abc)"', why: "unexpected version: 3.0.0 (abc)" },
    { script: "echo broken >&2; exit 1", why: "it does not run on this machine: broken" },
    { script: "kill -SEGV $$", why: "it does not run on this machine" },
    {
      script: 'case $1 in --version) echo "2.0.0 (abc)" ;; *) echo "state too old" >&2; exit 1 ;; esac',
      why: "it does not run on this machine: state too old",
    },
  ])("do not hand over to a version that fails its check: $why", async ({ script, why }) => {
    content = tarOf(script);
    const problem = await take("restarting");
    expect(problem).toMatchObject({ reason: "check_failed" });
    expect(problem?.message).toContain(why);
    expect(readlinkSync(join(root, "current"))).toBe("versions/1.0.0");
  });

  test("undo a switch that fails, with its guard and its record", async () => {
    await take("checking");
    let failing = true;
    const flush = (path: string) => {
      // The last one comes after the link was set.
      const fails = failing && readlinkSync(join(root, "current")) === "versions/2.0.0";
      if (fails) failing = false;
      return fails ? Promise.reject(new Error("I/O error")) : diskFolders.flush(path);
    };
    const problem = await steps({}, { ...diskFolders, flush }).restarting(wanted(), context);
    expect(problem).toMatchObject({ reason: "switch_failed" });
    expect(readlinkSync(join(root, "current"))).toBe("versions/1.0.0");
    expect(existsSync(join(root, "trial"))).toBe(false);
    expect((await record().load()).value).toEqual({ trial: null, last: null });
  });
});
