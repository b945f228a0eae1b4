import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readlinkSync, rmSync, statSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { InstallMachine, VERSION } from "../support/install-machine.ts";

/** install.sh in folders of its own, with a stand-in for systemd; test/systemd runs it on the real one. */

const canUnshare = spawnSync("unshare", ["--mount", "true"]).status === 0;
const hasShellcheck = spawnSync("shellcheck", ["--version"]).status === 0;
const SCRIPT = new URL("../../scripts/install/install.sh", import.meta.url).pathname;
const CONTROL_PLANE = new URL("../../scripts/install/install-control-plane.sh", import.meta.url).pathname;
const UNIT = "etc/systemd/system/fairlead-daemon.service";
const TOKEN_FILE = "etc/fairlead/bootstrap-token";

test.runIf(hasShellcheck)("shellcheck reports nothing (where it is installed)", () => {
  expect(execFileSync("shellcheck", [SCRIPT, CONTROL_PLANE], { encoding: "utf8" })).toBe("");
});

describe("install-control-plane.sh", () => {
  test.each([
    [["--public-url", "ftp://x.example"], 2, "requires a URL"],
    [["--public-url", "https://x.example/\nadmin: yes"], 2, "requires a URL"],
    [["--public-url", "https://x.example/"], 2, "requires a URL"],
    [["--public-url", "https://user:secret@x.example"], 2, "requires a URL"],
    [["--public-url", "https://x.example/?a=b"], 2, "requires a URL"],
    [["--models-url"], 2, "requires a URL"],
    [["--data"], 2, "requires --uninstall"],
    [["--nonsense"], 2, "unknown option"],
    [["--dry-run"], 1, process.getuid?.() === 0 ? "not in an unpacked build" : "must run as root"],
  ])("refuses %j and changes nothing", (args, code, words) => {
    const { status, stderr } = spawnSync(CONTROL_PLANE, args, { encoding: "utf8" });
    expect(stderr).toContain(words);
    expect(status).toBe(code);
  });
});

describe.runIf(canUnshare)("install.sh (needs root and mount namespaces)", () => {
  let machine: InstallMachine;
  const named = (): { version: string; sha256: { x64: string } } => ({
    version: VERSION,
    sha256: { x64: machine.sha256 },
  });

  beforeEach(async () => {
    machine = await InstallMachine.start();
  });
  afterEach(() => machine.remove());

  const nothingInstalled = (): void => {
    expect(machine.has("opt/fairlead-daemon/versions")).toBe(false);
    expect(machine.has(UNIT)).toBe(false);
    expect(machine.has(TOKEN_FILE)).toBe(false);
  };

  test("installs the build that the token names, enrolls, and leaves no token behind", async () => {
    const token = machine.token(named());
    const { code, output } = await machine.run([], { token });
    expect(output).toContain("verified against the token");
    expect(output).toContain("This machine is node nod_1.");
    expect(code).toBe(0);
    expect(readlinkSync(machine.path("opt/fairlead-daemon/current"))).toBe(`versions/${VERSION}`);
    expect(machine.read(UNIT)).toContain("/opt/fairlead-daemon/current/bin/fairlead-daemon run");
    expect(machine.has(TOKEN_FILE)).toBe(false);
    expect(output + machine.calls().join("\n")).not.toContain(token);
    expect(machine.asked.join(" ")).not.toContain(token);
  });

  test("installs from a platform below a path", async () => {
    const publicUrl = `${machine.url}/fairlead`;
    const { code, output } = await machine.run([], { token: machine.token(named(), publicUrl), publicUrl });
    expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining("This machine is node nod_1.") });
    expect(machine.asked.filter((path) => !/^\/(fairlead\/|version$)/.test(path))).toEqual([]);
  });

  test("repairs an installation when it is run again, without needless reloads of systemd or downloads", async () => {
    await machine.run([], { token: machine.token(named()) });
    machine.calls();
    machine.asked.length = 0;
    expect(await machine.run([])).toMatchObject({ code: 0 });
    expect(machine.calls()).not.toContain("systemctl daemon-reload");
    expect(machine.asked).toEqual(["/healthz", "/version"]);
    rmSync(machine.path(`opt/fairlead-daemon/versions/${VERSION}/bin/fairlead-daemon`));
    rmSync(machine.path(UNIT));
    expect(await machine.run([])).toMatchObject({ code: 0 });
    expect(machine.has(UNIT)).toBe(true);
    expect(machine.has(`opt/fairlead-daemon/versions/${VERSION}/bin/fairlead-daemon`)).toBe(true);
  });

  test("continues an interrupted installation", async () => {
    machine.write("opt/fairlead-daemon/staging.a1/build/bin/fairlead-daemon", "half");
    machine.write(`opt/fairlead-daemon/versions/${VERSION}/bin/fairlead-daemon`, "half");
    expect(await machine.run([], { token: machine.token(named()) })).toMatchObject({ code: 0 });
    expect(readdirSync(machine.path("opt/fairlead-daemon")).toSorted()).toEqual([
      "current",
      "installed-files",
      "versions",
    ]);
  });

  test("keeps the token readable only by root when it does not start the daemon", async () => {
    const token = machine.token(named());
    machine.write("token", `${token}\n`);
    expect(await machine.run(["--token-file", machine.path("token"), "--no-start"])).toMatchObject({ code: 0 });
    expect(machine.read(TOKEN_FILE)).toBe(`${token}\n`);
    expect(statSync(machine.path(TOKEN_FILE)).mode & 0o777).toBe(0o600);
    expect(machine.calls()).toEqual(["systemctl daemon-reload"]);
  });

  test("refuses a build that does not match the token and installs nothing", async () => {
    const token = machine.token({ version: VERSION, sha256: { x64: "0".repeat(64) } });
    const { code, output } = await machine.run([], { token });
    expect(code).toBe(1);
    expect(output).toContain("does not match the token");
    expect(readdirSync(machine.path("opt/fairlead-daemon/versions"))).toEqual([]);
    expect(machine.has(UNIT)).toBe(false);
  });

  test("changes nothing in a dry run", async () => {
    const { code, output } = await machine.run(["--dry-run"], { token: machine.token(named()) });
    expect(output).toContain(`build ${VERSION} for x64 would be installed`);
    expect(code).toBe(0);
    nothingInstalled();
    expect(machine.calls()).toEqual([]);
  });

  test("reports everything that is wrong with the machine together, one problem per line", async () => {
    rmSync(machine.path("run/systemd"), { recursive: true });
    await machine.stopDocker();
    const { code, output } = await machine.run([], { publicUrl: "http://127.0.0.1:1" });
    expect(code).toBe(1);
    expect(output).toMatch(/BAD +this machine does not use systemd/);
    expect(output).toMatch(/BAD +cannot reach http:\/\/127\.0\.0\.1:1: .*7/);
    expect(output).toMatch(/(BAD|note) +.*Docker/);
    expect(output).toContain("Nothing was installed.");
    nothingInstalled();
  });

  test.each([
    [["--tokenfile"], "unknown option"],
    [["--token-file"], "requires a value"],
    [["--version", "../../etc"], "is not a valid version"],
    [["--containers"], "requires --uninstall"],
    [["flb_secret"], "not as an argument"],
  ])("refuses the arguments %j", async (args, words) => {
    const { code, output } = await machine.run(args);
    expect(code).toBe(2);
    expect(output).toContain(words);
    expect(output).not.toContain("flb_secret");
  });

  test.each([
    ["flb_half", "the bootstrap token is invalid"],
    ["something", "the bootstrap token is invalid"],
    ['"; touch /opt/x; "', "the bootstrap token is invalid"],
  ])("refuses an invalid token: %s", async (token, words) => {
    const { code, output } = await machine.run([], { token });
    expect(code).toBe(1);
    expect(output).toContain(words);
    nothingInstalled();
  });

  test("refuses a token of another platform, and plain HTTP to another machine", async () => {
    const foreign = await machine.run([], { token: machine.token(named(), "https://other.example") });
    expect(foreign.output).toContain("the token is for https://other.example");
    const plain = await machine.run([], { publicUrl: "http://platform.example" });
    expect(plain.output).toContain("plain HTTP to another machine");
    for (const { code } of [foreign, plain]) expect(code).toBe(1);
    nothingInstalled();
  });

  test.each([
    [[], { offered: false }, "offers no daemon build"],
    [["--version", "9.9.9"], {}, "offers no build 9.9.9 for x64"],
    [[], {}, "there is no token"],
  ])("reports what is missing: %j %j", async (args, options, words) => {
    const { code, output } = await machine.run(args, options);
    expect(code).toBe(1);
    expect(output).toContain(words);
  });

  test("reports that the platform refused the node, and what to do", async () => {
    machine.write("run/.refuses", "");
    machine.write("run/.code", "5");
    const { code, output } = await machine.run([], { token: machine.token(named()) });
    expect(code).toBe(1);
    expect(output).toContain("said the daemon");
    expect(output).toContain("Get a new token");
  });

  test("uninstalls without leaving anything behind, and removes containers only when asked", async () => {
    const before = execFileSync("find", [machine.dir, "-not", "-name", ".*"], { encoding: "utf8" });
    await machine.run([], { token: machine.token(named()) });
    machine.calls();
    expect(await machine.run(["--uninstall", "--dry-run"])).toMatchObject({ code: 0 });
    expect(machine.has(UNIT)).toBe(true);
    expect(await machine.run(["--uninstall"])).toMatchObject({ code: 0 });
    expect(machine.calls().join("\n")).not.toContain("purge");
    expect(execFileSync("find", [machine.dir, "-not", "-name", ".*"], { encoding: "utf8" })).toBe(before);

    await machine.run([], { token: machine.token(named()) });
    expect(await machine.run(["--uninstall", "--containers"])).toMatchObject({ code: 0 });
    expect(machine.calls().join("\n")).toContain("purge --state-dir /var/lib/fairlead-daemon");
    expect(await machine.run(["--uninstall"])).toMatchObject({ code: 0 });
  });
});
