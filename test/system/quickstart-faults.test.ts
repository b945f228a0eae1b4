import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { describeWithDocker } from "../support/docker.ts";
import { twoFreePorts } from "../support/ports.ts";
import { runScript } from "../support/run-script.ts";

const root = new URL("../..", import.meta.url).pathname;
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fairlead-faults-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A program of this name is found first on the PATH that is returned. */
function shim(name: string, script: string): string {
  const bin = join(folder, "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, name), `#!/bin/bash\n${script}\n`);
  chmodSync(join(bin, name), 0o755);
  return `${bin}:${process.env["PATH"]}`;
}

async function withPrerequisites(script: string, path: string): Promise<{ code: number | null; out: string }> {
  const child = spawn("bash", ["-c", `set -euo pipefail; . scripts/lib/prerequisites.sh; ${script}`], {
    cwd: root,
    env: { ...process.env, PATH: path },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const code = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { out: await text(child.stdout), code: await code };
}

describeWithDocker("a quickstart that fails", () => {
  const quickstart = (args: readonly string[], path = process.env["PATH"]): ReturnType<typeof runScript> =>
    runScript("quickstart", ["--data-dir", join(folder, "data"), ...args], { XDG_CONFIG_HOME: folder, PATH: path });

  test("leaves no incomplete quickstart.env, and what it created is found by the next run and by --purge", async () => {
    const [platform, inference] = await twoFreePorts();
    const ports = ["--platform-port", String(platform), "--inference-port", String(inference)];
    const broken = shim("docker", '[ "$1" = info ] && exit 0; echo "no space left on device" >&2; exit 1');
    const failed = await quickstart(ports, broken);
    expect(failed).toMatchObject({ code: 1, out: expect.stringContaining("demo engine image") });
    expect(existsSync(join(folder, "data", "quickstart.state"))).toBe(true);
    expect(existsSync(join(folder, "data", "quickstart.env"))).toBe(false);
    expect(await quickstart(["--purge"])).toMatchObject({ code: 0 });
    expect(existsSync(join(folder, "data"))).toBe(false);
  });
});

test("of two concurrent quickstarts, the second reports that it waits and then continues", async () => {
  const lock = join(folder, "lock");
  writeFileSync(lock, "");
  const order = join(folder, "order");
  const take = (name: string, work: string): ReturnType<typeof withPrerequisites> =>
    withPrerequisites(
      `wait_for_lock ${lock} "on this machine"; echo ${name} >>${order}; ${work}`,
      process.env["PATH"] ?? "",
    );
  const first = take(
    "first",
    `touch ${folder}/held; while [ ! -e ${folder}/go ]; do read -rt 0.05 <> <(:) || true; done`,
  );
  await expect.poll(() => existsSync(join(folder, "held"))).toBe(true);
  const second = withPrerequisites(
    `wait_for_lock ${lock} "on this machine" > >(tee ${folder}/told); echo second >>${order}`,
    process.env["PATH"] ?? "",
  );
  await expect.poll(() => existsSync(join(folder, "told"))).toBe(true);
  writeFileSync(join(folder, "go"), "");
  expect((await first).code).toBe(0);
  const { code, out } = await second;
  expect([code, out]).toEqual([0, "  waiting for another quickstart on this machine\n"]);
  expect((await withPrerequisites(`cat ${order}`, process.env["PATH"] ?? "")).out).toBe("first\nsecond\n");
});

test("apt is retried while another program holds its lock, and the step reports it", async () => {
  const path = shim(
    "apt-get",
    `n=$(cat ${folder}/n 2>/dev/null || echo 0); echo $((n + 1)) >${folder}/n
[ "$n" -ge 2 ] || { echo "E: Could not get lock /var/lib/apt/lists/lock" >&2; echo "E: Unable to lock directory /var/lib/apt/lists/" >&2; exit 100; }
echo done`,
  );
  const { code, out } = await withPrerequisites('apt_wait_pause=0; step "updating" apt_get update', path);
  expect([code, out]).toEqual([
    0,
    expect.stringMatching(/^ {2}updating +\n {4}waiting for another program that uses apt\n.*ok/),
  ]);
});

test("apt is not retried when it fails for another reason", async () => {
  const path = shim("apt-get", `echo x >>${folder}/calls; echo "E: Unable to locate package nonsense" >&2; exit 100`);
  const { code } = await withPrerequisites("apt_get install nonsense 8>&1 || exit 7", path);
  expect(code).toBe(7);
  expect((await withPrerequisites(`wc -l <${folder}/calls`, process.env["PATH"] ?? "")).out.trim()).toBe("1");
});
