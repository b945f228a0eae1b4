import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, test } from "vitest";
import { docker } from "./docker.ts";
import { Program } from "./program.ts";
import { waitFor } from "./wait-for.ts";

const run = promisify(execFile);
const UP_MS = 60_000;

/** A suite that needs a second host. Where this machine cannot have one it is one skipped test that says why. */
export function describeWithDockerHost(name: string, suite: () => void): void {
  const reason = whyNoDockerHost();
  if (reason === null) describe(name, suite);
  else test(name, ({ skip }) => skip(reason));
}

/** @returns why this machine cannot have a second host, or null where it can. */
function whyNoDockerHost(): string | null {
  if (process.getuid?.() !== 0) return "a network namespace and a dockerd of its own need root";
  for (const tool of ["ip", "nsenter", "dockerd", "iptables", "docker"]) {
    if (spawnSync("which", [tool]).status !== 0) return `there is no ${tool} on this machine`;
  }
  const name = `fl-probe-${process.pid}`;
  const added = spawnSync("ip", ["netns", "add", name], { encoding: "utf8" });
  if (added.status !== 0) return `no network namespace can be made: ${added.stderr.trim()}`;
  spawnSync("ip", ["netns", "delete", name]);
  return null;
}

/**
 * A host of its own as far as the network and Docker go: a network namespace, joined to this one by a veth pair, with a
 * dockerd inside that may be killed. Enter it by `nsenter`, since `ip netns exec` hides the cgroup mounts from dockerd.
 */
export class DockerHost {
  readonly dir = mkdtempSync(join(tmpdir(), "fairlead-host-"));
  /** Our end of the veth pair; programs on the host reach us there. */
  readonly ourAddress: string;
  readonly socket = join(this.dir, "docker.sock");
  /** Put before a command line: runs it on the host. */
  readonly enter: readonly string[];
  readonly #name = `fl${process.pid}`;
  readonly #theirAddress: string;
  readonly #execRoot = join(this.dir, "exec");
  readonly #pidFile = join(this.dir, "docker.pid");
  #dockerd: Program | null = null;

  private constructor() {
    // Of the block for benchmarks between networks (RFC 2544), which nothing else uses.
    const subnet = `198.18.${process.pid % 256}`;
    this.ourAddress = `${subnet}.1`;
    this.#theirAddress = `${subnet}.2`;
    this.enter = ["nsenter", `--net=/var/run/netns/${this.#name}`];
  }

  static async create(): Promise<DockerHost> {
    const host = new DockerHost();
    try {
      await host.#makeNetwork();
      await host.startDocker();
      return host;
    } catch (error) {
      await host.remove();
      throw error;
    }
  }

  docker(...args: readonly string[]): Promise<string> {
    return docker("-H", `unix://${this.socket}`, ...args);
  }

  async startDocker(): Promise<void> {
    const folders = ["--data-root", join(this.dir, "data"), "--exec-root", this.#execRoot, "--pidfile", this.#pidFile];
    const command = [...this.enter, "dockerd", "--live-restore", ...folders, "-H", `unix://${this.socket}`];
    const dockerd = new Program(command, join(this.dir, "dockerd.log"));
    this.#dockerd = dockerd;
    await waitFor("the second dockerd", UP_MS, async () => !dockerd.running || (await this.docker("info")));
    if (!dockerd.running) throw new Error(`the second dockerd ended at once:\n${dockerd.lastLines()}`);
  }

  /** Kills dockerd and its containerd without a word; the containers run on. */
  async killDocker(): Promise<void> {
    await this.#dockerd?.kill();
    const containerdPid = join(this.#execRoot, "containerd/containerd.pid");
    process.kill(Number(readFileSync(containerdPid, "utf8")), "SIGKILL");
    for (const stale of [this.#pidFile, containerdPid]) rmSync(stale, { force: true });
  }

  /** Copies an image of this machine's Docker engine to the host's. */
  async copyImage(image: string): Promise<void> {
    const save = spawn("docker", ["save", image], { stdio: ["ignore", "pipe", "ignore"] });
    const load = spawn("docker", ["-H", `unix://${this.socket}`, "load"], { stdio: ["pipe", "ignore", "inherit"] });
    save.stdout.pipe(load.stdin);
    const [code] = await once(load, "close");
    if (code !== 0) throw new Error(`${image} could not be copied`);
  }

  /** Removes the containers, stops dockerd, and leaves nothing behind. Safe at any point, and more than once. */
  async remove(): Promise<void> {
    if (this.#dockerd !== null) {
      // Only a dockerd can end what a killed one has left running.
      if (!this.#dockerd.running) await this.startDocker().catch(() => null);
      const ids = (await this.docker("ps", "-aq").catch(() => "")).split("\n").filter(Boolean);
      if (ids.length > 0) await this.docker("rm", "-fv", ...ids).catch(() => null);
      await this.#dockerd.stop();
    }
    for (const mount of mountsUnder(this.dir)) spawnSync("umount", ["--lazy", mount]);
    spawnSync("ip", ["link", "delete", `${this.#name}a`]);
    spawnSync("ip", ["netns", "delete", this.#name]);
    rmSync(this.dir, { recursive: true, force: true });
  }

  async #makeNetwork(): Promise<void> {
    const [ours, theirs] = [`${this.#name}a`, `${this.#name}b`];
    const inside = (...args: readonly string[]): Promise<unknown> => run("ip", ["-n", this.#name, ...args]);
    await run("ip", ["netns", "add", this.#name]);
    await run("ip", ["link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", this.#name]);
    await run("ip", ["address", "add", `${this.ourAddress}/24`, "dev", ours]);
    await run("ip", ["link", "set", ours, "up"]);
    await inside("address", "add", `${this.#theirAddress}/24`, "dev", theirs);
    await inside("link", "set", theirs, "up");
    await inside("link", "set", "lo", "up");
  }
}

/** Deepest first. */
function mountsUnder(folder: string): string[] {
  const points = readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "");
  return points.filter((point) => point.startsWith(`${folder}/`)).toReversed();
}
