import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { DEMO_IMAGE, docker } from "../../support/docker.ts";
import type { ScriptResult } from "../../support/run-script.ts";
import { waitFor } from "../../support/wait-for.ts";

const run = promisify(execFile);
const BUILD_ROOT = new URL("../../../scripts/lib/build-debian-root.sh", import.meta.url).pathname;
const MACHINE_IMAGE = new URL("../../../scripts/build-machine-image", import.meta.url).pathname;
const BOOT_MS = 120_000;
const SCRIPT_MS = 240_000;

/** Names the process that a box belongs to, so that scripts/test can remove what a killed one left. */
const OWNER_LABEL = `dev.fairlead.test.owner=${process.pid}`;

export type Suite = "bookworm" | "trixie";

/**
 * Before systemd: what a machine has and a container lacks. Shared mounts for LoadCredential; kernel parameters and control groups that
 * the Docker engine inside can write. systemd 257 runs on control groups of the first kind only where it is told to.
 */
const OPEN = `set -e
mount --make-rshared /
mount -o remount,rw /proc/sys
mount -o remount,rw /sys
while read -r _ point kind _; do
  case $kind in cgroup | cgroup2) mount -o remount,bind,rw "$point" ;; esac
done </proc/mounts`;

const BOOT = `${OPEN}
exec /lib/systemd/systemd SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1`;

/** What systemd and the Docker engine do first. */
const PROBE = `group=$(find /sys/fs/cgroup -name cgroup.procs | head -n 1)
mkdir "\${group%/*}/probe" && rmdir "\${group%/*}/probe"
mount -t overlay -o lowerdir=/etc:/usr none /mnt
iptables -t nat -N PROBE`;

/** Not --privileged: it asks for more than machines give that are themselves narrow. */
const CAPABILITIES = ["SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE", "DAC_READ_SEARCH", "SYS_NICE", "SYSLOG", "IPC_LOCK"];

const CONTAINER = [
  ...CAPABILITIES.map((capability) => `--cap-add=${capability}`),
  "--security-opt=seccomp=unconfined",
  "--security-opt=apparmor=unconfined",
  "--device-cgroup-rule=a *:* rwm",
  "--cgroupns=private",
  "--tmpfs=/run:exec,mode=755",
  "--tmpfs=/run/lock",
  "--tmpfs=/tmp",
  // Not on the container's own overlay, on which no second one can lie.
  "--volume=/var/lib/docker",
  "--env=container=docker",
  "--stop-signal=SIGRTMIN+3",
  `--label=${OWNER_LABEL}`,
];

/** A machine: a Debian container in which systemd is PID 1, with a Docker engine of its own inside. */
export class Box {
  readonly id: string;

  private constructor(id: string) {
    this.id = id;
  }

  /** A machine on which nothing but Docker was installed, and the demo engine's image is there. */
  static async boot(suite: Suite, hostname: string = suite): Promise<Box> {
    await run(BUILD_ROOT, [suite, imageOf(suite)], { maxBuffer: 16 * 1024 * 1024 });
    const command = ["--hostname", hostname, "--entrypoint", "/bin/sh", imageOf(suite), "-c", BOOT];
    const box = new Box(await docker("run", "--detach", ...CONTAINER, ...command));
    try {
      await box.#untilUp();
      await box.copyImage(DEMO_IMAGE);
      return box;
    } catch (error) {
      await box.remove();
      throw error;
    }
  }

  /** Runs a script of the shell as root, with nothing on standard input. Reports and kills a script that hangs. */
  async try(script: string): Promise<ScriptResult> {
    const child = spawn("docker", ["exec", this.id, "sh", "-c", script], { stdio: ["ignore", "pipe", "pipe"] });
    const closed = once(child, "close");
    const giveUp = (): unknown => child.kill("SIGKILL");
    const limit = setTimeout(() => void this.#report(script).then(giveUp, giveUp), SCRIPT_MS);
    const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
    const [code] = (await closed) as [number | null];
    clearTimeout(limit);
    return { code, out, errors };
  }

  /** Prints what the machine is doing while a script hangs. */
  async #report(script: string): Promise<void> {
    const processes = `for each in /proc/[0-9]*; do echo "$each $(tr '\\0' ' ' <$each/cmdline) $(cat $each/wchan)"; done`;
    const look = `${processes}; systemctl list-jobs; journalctl -n 60 --no-pager; true`;
    const { stdout } = await run("docker", ["exec", this.id, "sh", "-c", look], { timeout: 20_000 });
    const seen = `still running after ${SCRIPT_MS} ms: ${script}\n${stdout}\n`;
    process.stderr.write(seen.replaceAll(/TOKEN=\S+/g, "TOKEN=…"));
  }

  /** @returns what it printed, trimmed. @throws with all of its words where it failed. */
  async run(script: string): Promise<string> {
    const { code, out, errors } = await this.try(script);
    if (code !== 0) throw new Error(`${script}\nended with ${code}:\n${out}${errors}`);
    return out.trim();
  }

  /** Waits until a script ends with 0. @returns what it printed. */
  async until(script: string, seconds = 60): Promise<string> {
    return waitFor(script, seconds * 1000, () => this.run(script));
  }

  /** Makes a Node program turn in a circle for ever, by the debugger that Node opens when it is told to. @param node the runtime. */
  async blockEventLoop(pid: string, node: string): Promise<void> {
    const evaluate = JSON.stringify({ id: 1, method: "Runtime.evaluate", params: { expression: "for (;;) {}" } });
    const program = `const [target] = await (await fetch("http://127.0.0.1:9229/json/list")).json();
      const socket = new WebSocket(target.webSocketDebuggerUrl);
      socket.onopen = () => { socket.send(${JSON.stringify(evaluate)}); setTimeout(() => process.exit(0), 500); };`;
    await this.run(`kill -USR1 ${pid}`);
    await this.until("curl -fsS http://127.0.0.1:9229/json/version");
    await this.run(`${node} --input-type=module -e '${program}'`);
  }

  /** As `systemctl reboot`. */
  async reboot(): Promise<void> {
    await docker("stop", "--time", "60", this.id);
    await this.#start();
  }

  /** As when the power fails. */
  async cutPower(): Promise<void> {
    await docker("kill", this.id);
    await this.#start();
  }

  /** From the outer machine's Docker engine to this one's. */
  async copyImage(image: string): Promise<void> {
    const save = spawn("docker", ["save", image], { stdio: ["ignore", "pipe", "ignore"] });
    const load = spawn("docker", ["exec", "--interactive", this.id, "docker", "load"], {
      stdio: ["pipe", "ignore", "inherit"],
    });
    save.stdout.pipe(load.stdin);
    const [code] = await once(load, "close");
    if (code !== 0) throw new Error(`${image} could not be copied`);
  }

  /** Leaves nothing. */
  async remove(): Promise<void> {
    await docker("rm", "--force", "--volumes", this.id);
  }

  async #start(): Promise<void> {
    await docker("start", this.id);
    await this.#untilUp();
  }

  async #untilUp(): Promise<void> {
    await this.until("docker info >/dev/null 2>&1 && systemctl is-system-running", BOOT_MS / 1000).catch(
      async (error: unknown) => {
        const { out } = await this.try("systemctl --failed; systemctl list-jobs; journalctl -n 40 --no-pager");
        const words = await docker("logs", this.id).catch(() => "");
        throw new Error(`the machine does not come up:\n${words}\n${out}`, { cause: error });
      },
    );
  }
}

/** As the `docker` provider needs it. */
export async function buildMachineImage(): Promise<void> {
  await run(MACHINE_IMAGE, [], { maxBuffer: 16 * 1024 * 1024 });
}

/** @returns why this machine cannot have such boxes, or null where it can. Makes the root where it is not there. */
export function whyNoBoxes(suite: Suite): string | null {
  if (spawnSync("docker", ["info"], { stdio: "ignore" }).status !== 0)
    return "no Docker engine answers on this machine";
  if (process.getuid?.() !== 0) return "a Debian root can only be made by root";
  if (spawnSync("which", ["debootstrap"]).status !== 0) return "there is no debootstrap on this machine";
  const root = spawnSync(BUILD_ROOT, [suite, imageOf(suite)], { encoding: "utf8" });
  if (root.status !== 0) return `no root of ${suite} could be made: ${lastLine(root.stderr)}`;
  const image = ["--entrypoint", "/bin/sh", imageOf(suite), "-c", `${OPEN}\n${PROBE}`];
  const probe = spawnSync("docker", ["run", "--rm", ...CONTAINER, ...image], { encoding: "utf8" });
  return probe.status === 0 ? null : `systemd and Docker cannot run in a container here: ${lastLine(probe.stderr)}`;
}

const imageOf = (suite: Suite): string => `fairlead-test/${suite}:1`;
const lastLine = (text: string): string => text.trim().split("\n").at(-1) ?? "";
