import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
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
export function whyNoDockerHost(): string | null {
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

export interface DockerHostOptions {
  /** Whether containers outlive dockerd. */
  readonly liveRestore?: boolean;
  /** Keeps images and containers on a disk of this size, in memory. */
  readonly diskMegabytes?: number;
}

/** Which way across the pair of interfaces nothing passes any more. */
export type Cut = "to the host" | "from the host" | "both";

/**
 * A host of its own as far as the network and Docker go: a network namespace, joined to this one by a veth pair, with a
 * dockerd inside that may be killed. Enter it by `nsenter`, since `ip netns exec` hides the cgroup mounts from dockerd.
 */
export class DockerHost {
  readonly dir = mkdtempSync(join(tmpdir(), "fairlead-host-"));
  readonly dataRoot = join(this.dir, "data");
  /** Our end of the veth pair; programs on the host reach us there. */
  readonly ourAddress: string;
  readonly socket = join(this.dir, "docker.sock");
  /** Put before a command line: runs it on the host. */
  readonly enter: readonly string[];
  readonly #name = `fl${process.pid}`;
  readonly #theirAddress: string;
  readonly #execRoot = join(this.dir, "exec");
  readonly #pidFile = join(this.dir, "docker.pid");
  readonly #options: DockerHostOptions;
  #dockerd: Program | null = null;

  private constructor(options: DockerHostOptions) {
    this.#options = options;
    const subnet = freeSubnet();
    this.ourAddress = `${subnet}.1`;
    this.#theirAddress = `${subnet}.2`;
    this.enter = ["nsenter", `--net=/var/run/netns/${this.#name}`];
  }

  static async create(options: DockerHostOptions = {}): Promise<DockerHost> {
    const host = new DockerHost(options);
    try {
      await host.#makeNetwork();
      await host.#makeDisk();
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
    const folders = ["--data-root", this.dataRoot, "--exec-root", this.#execRoot, "--pidfile", this.#pidFile];
    // Docker speaks plain HTTP to a registry on our end alone.
    const settings = ["--insecure-registry", `${this.ourAddress}/32`];
    if (this.#options.liveRestore !== false) settings.push("--live-restore");
    const command = [...this.enter, "dockerd", ...settings, ...folders, "-H", `unix://${this.socket}`];
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

  /** Ends dockerd as an operator does; what it left running runs on only where it restores. */
  async stopDocker(): Promise<void> {
    await this.#dockerd?.stop();
  }

  /** Drops every packet that goes this way; nobody is told. */
  async cut(way: Cut): Promise<void> {
    const drop = (chain: string, flag: string): Promise<unknown> =>
      this.#inside("iptables", "-A", chain, flag, `${this.#name}b`, "-j", "DROP");
    if (way !== "from the host") await drop("INPUT", "-i");
    if (way !== "to the host") await drop("OUTPUT", "-o");
  }

  async mend(): Promise<void> {
    await this.#inside("iptables", "-F", "INPUT");
    await this.#inside("iptables", "-F", "OUTPUT");
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

  #inside(program: string, ...args: readonly string[]): Promise<unknown> {
    const [nsenter = "", ...into] = this.enter;
    return run(nsenter, [...into, program, ...args]);
  }

  async #makeDisk(): Promise<void> {
    const { diskMegabytes } = this.#options;
    if (diskMegabytes === undefined) return;
    mkdirSync(this.dataRoot);
    await run("mount", ["-t", "tmpfs", "-o", `size=${diskMegabytes}m`, "fairlead-drill", this.dataRoot]);
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

/** Of the half of the block for benchmarks between networks (RFC 2544) that workloads have no networks in. */
function freeSubnet(): string {
  const taken = new Set(Object.values(networkInterfaces()).flatMap((own = []) => own.map(({ address }) => address)));
  const all = Array.from({ length: 256 }, (_, index) => (process.pid + index) % 256);
  const free = all.map((at) => `198.18.${at}`).find((subnet) => !taken.has(`${subnet}.1`));
  if (free === undefined) throw new Error("every subnet of 198.18.0.0/16 is in use");
  return free;
}

/** Deepest first. */
function mountsUnder(folder: string): string[] {
  const points = readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "");
  return points.filter((point) => point.startsWith(`${folder}/`)).toReversed();
}
