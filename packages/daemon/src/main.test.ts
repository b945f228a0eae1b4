import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { main } from "./main.ts";
import { DAEMON_VERSION } from "./process/version.ts";

let folder = "";
let out = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "fairlead-main-"));
  out = "";
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, "write").mockImplementation((chunk) => {
      out += String(chunk);
      return true;
    });
  }
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

test.each([["run"], ["status"], ["doctor"], ["version"]])(
  "%s --help shows examples and exits with 0",
  async (command) => {
    expect(await main([command, "--help"])).toBe(0);
    expect(out).toContain("Example");
  },
);

test("an incorrect call exits with 2 and says what is wrong", async () => {
  expect(await main(["run", "--no-such-flag"])).toBe(2);
  expect(out).toContain("--no-such-flag");
  expect(await main(["run", "--state-dir", folder])).toBe(2);
  expect(out).toContain("not enrolled");
  expect(await main(["run", "--state-dir", folder, "--log-level", "loud"])).toBe(2);
  expect(out).toContain("--log-level: must be one of");
});

test("status reports a folder that no daemon has used", async () => {
  expect(await main(["status", "--state-dir", join(folder, "none"), "--json"])).toBe(0);
  expect(JSON.parse(out)).toEqual({
    running: false,
    nodeId: null,
    platformUrl: null,
    enrolled: false,
    generation: null,
    workloads: [],
    containers: [],
  });
});

test("doctor reports each check on one line, and exits with 1 if the daemon could not work", async () => {
  const socket = join(folder, "no.sock");
  const argv = ["doctor", "--state-dir", folder, "--runtime-dir", folder, "--docker-socket", socket];
  expect(await main(argv)).toBe(1);
  expect(out).toMatch(/^ok {4}system /m);
  expect(out).toMatch(/^FAIL {2}docker +cannot connect: /m);
  expect(out).toMatch(/^skip {2}platform /m);
  expect(out.trimEnd().split("\n").at(-1)).toBe("1 of these must be fixed before the daemon can run");
  out = "";
  expect(await main([...argv, "--json", "--platform-url", "http://127.0.0.1:1"])).toBe(1);
  const { ok, checks } = JSON.parse(out) as { ok: boolean; checks: { name: string; level: string }[] };
  expect(ok).toBe(false);
  expect(checks.find(({ name }) => name === "platform")?.level).toBe("problem");
  expect(await main([...argv, "--platform-url", "ftp://x"])).toBe(2);
});

test("version prints what this program is", async () => {
  expect(await main(["version", "--json"])).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ daemon: DAEMON_VERSION, protocols: [1] });
});
