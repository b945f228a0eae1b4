import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { FleetStage } from "../support/fleet-stage.ts";
import { waitFor } from "../support/wait-for.ts";
import { describeMachine } from "./describe-machine.ts";
import { cpuSeconds, memoryMb } from "./machine.ts";
import type { DaemonsReport, DaemonsToRun } from "./targets/fleet-daemons-program.ts";

/**
 * `node test/bench/fleet.ts`, after a build: a fleet of simulated daemons (the daemon's own link, identity, reports and tunnel, no
 * containers) on one control plane. What it costs at rest, how it comes back after a restart, how soon a change reaches a node.
 */

const { values: options } = parseArgs({
  options: {
    daemons: { type: "string", default: "5000" },
    seconds: { type: "string", default: "60" },
    changes: { type: "string", default: "100" },
    tunnels: { type: "boolean", default: false },
    /** For the server's Node, such as `--cpu-prof`. */
    "node-option": { type: "string", multiple: true, default: [] },
  },
});
const DAEMONS = Number(options.daemons);
const SECONDS = Number(options.seconds);
const CHANGES = Number(options.changes);
const PROCESSES = 2;
const PATIENCE_MS = 300_000;
const LOOK_MS = 200;
const SETTLE_MS = 10_000;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

const now = (): number => performance.timeOrigin + performance.now();

/** The simulated daemons, in processes of their own. */
class Daemons {
  readonly #children: ChildProcess[];
  readonly #counts: { live: number; tunnels: number; links: number }[];
  readonly #waiting = new Map<string, (at: number) => void>();

  constructor(stage: FleetStage) {
    const program = new URL("targets/fleet-daemons-program.ts", import.meta.url).pathname;
    const share = Math.ceil(stage.nodes.length / PROCESSES);
    this.#counts = Array.from({ length: PROCESSES }, () => ({ live: 0, tunnels: 0, links: 0 }));
    this.#children = this.#counts.map((_count, n) => {
      const child = fork(program, { execArgv: process.execArgv });
      child.on("message", (report: DaemonsReport) => this.#take(n, report));
      const nodes = stage.nodes.slice(n * share, (n + 1) * share);
      child.send({ nodes, tunnels: options.tunnels } satisfies DaemonsToRun);
      return child;
    });
  }

  get live(): number {
    return this.#counts.reduce((sum, { live }) => sum + live, 0);
  }

  get tunnels(): number {
    return this.#counts.reduce((sum, { tunnels }) => sum + tunnels, 0);
  }

  get links(): number {
    return this.#counts.reduce((sum, { links }) => sum + links, 0);
  }

  get areBack(): boolean {
    return this.live === DAEMONS && (!options.tunnels || this.tunnels === DAEMONS);
  }

  get cpuSeconds(): number {
    return this.#children.reduce((sum, { pid = 0 }) => sum + cpuSeconds(pid), 0);
  }

  /** @returns when the node's next desired state came to it, Unix milliseconds. */
  nextState(nodeId: string): Promise<number> {
    return new Promise((resolve) => this.#waiting.set(nodeId, resolve));
  }

  stop(): void {
    for (const child of this.#children) child.kill("SIGKILL");
  }

  #take(n: number, report: DaemonsReport): void {
    if ("live" in report) this.#counts[n] = report;
    else this.#waiting.get(report.nodeId)?.(report.at);
  }
}

async function untilBack(daemons: Daemons): Promise<void> {
  await waitFor("all daemons", PATIENCE_MS, async () => daemons.areBack);
}

async function steady(stage: FleetStage, daemons: Daemons): Promise<void> {
  const { pid } = stage.server;
  const before = {
    cpu: cpuSeconds(pid),
    theirs: daemons.cpuSeconds,
    beats: await stage.figure("fairlead_heartbeats_total"),
  };
  const started = now();
  await delay(SECONDS * 1000);
  const seconds = (now() - started) / 1000;
  const share = ((cpuSeconds(pid) - before.cpu) / seconds) * 100;
  const theirs = ((daemons.cpuSeconds - before.theirs) / seconds / DAEMONS) * 100;
  const beats = ((await stage.figure("fairlead_heartbeats_total")) - before.beats) / seconds;
  say(`steady: ${share.toFixed(1)} % of a core, ${memoryMb(pid).toFixed(0)} MB RSS, ${beats.toFixed(1)} heartbeats/s`);
  say(`  one simulated daemon: ${theirs.toFixed(4)} % of a core`);
}

async function changes(stage: FleetStage, daemons: Daemons): Promise<void> {
  const times: number[] = [];
  for (let n = 0; n < CHANGES; n++) {
    const nodeId = stage.nodes[(n * 7919) % stage.nodes.length]?.identity.nodeId ?? "";
    const came = daemons.nextState(nodeId);
    const sent = now();
    await stage.call("PATCH", `/v1/nodes/${nodeId}`, {
      node: { engineConfig: { preset: "fairlead-demo", env: { ROUND: String(n) } } },
    });
    times.push((await came) - sent);
  }
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(1);
  say(`a change, from the call to the node: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms of ${CHANGES}`);
}

async function restart(stage: FleetStage, daemons: Daemons): Promise<void> {
  const linksBefore = daemons.links;
  const stopping = now();
  await stage.server.stop();
  const stopped = now();
  await stage.startServer();
  const ready = now();
  let failed = 0;
  let slowest = 0;
  let unreachable = 0;
  while (!daemons.areBack && now() - ready < PATIENCE_MS) {
    const asked = now();
    if (!(await stage.isReady().catch(() => false))) failed += 1;
    slowest = Math.max(slowest, now() - asked);
    unreachable = Math.max(unreachable, await stage.nodesIn("unreachable"));
    await delay(LOOK_MS);
  }
  const back = now();
  const { pid } = stage.server;
  const seconds = (from: number, to: number): string => ((to - from) / 1000).toFixed(1);
  say(`restart: stopped in ${seconds(stopping, stopped)} s, ready ${seconds(stopped, ready)} s later`);
  say(
    `  all back ${seconds(ready, back)} s after that; readiness failed ${failed} times, slowest ${slowest.toFixed(0)} ms`,
  );
  say(`  CPU of the server until then ${cpuSeconds(pid).toFixed(1)} s, ${memoryMb(pid).toFixed(0)} MB RSS`);
  const putOff = ["links", "tunnels"].map((of) => `fairlead_daemon_upgrades_put_off_total{of="${of}"}`);
  const [links = 0, tunnels = 0] = await Promise.all(putOff.map((series) => stage.figure(series)));
  say(
    `  links opened ${daemons.links - linksBefore}, put off ${links} links and ${tunnels} tunnels; unreachable at most ${unreachable}`,
  );
}

const seeding = now();
const stage = await FleetStage.start({
  nodes: DAEMONS,
  settings: { log: { level: "warn" } },
  execArgv: options["node-option"],
});
let daemons: Daemons | null = null;
try {
  say(`${describeMachine()}\n`);
  say(
    `${DAEMONS} daemons${options.tunnels ? " with tunnels" : ""}; filled and started in ${((now() - seeding) / 1000).toFixed(1)} s`,
  );
  say(`server without daemons: ${memoryMb(stage.server.pid).toFixed(0)} MB RSS`);
  const first = now();
  daemons = new Daemons(stage);
  await untilBack(daemons);
  say(`all connected for the first time in ${((now() - first) / 1000).toFixed(1)} s`);
  await waitFor("all nodes to be active", PATIENCE_MS, async () => (await stage.nodesIn("active")) === DAEMONS);
  say(`all active after ${((now() - first) / 1000).toFixed(1)} s, ${cpuSeconds(stage.server.pid).toFixed(1)} s of CPU`);
  await delay(SETTLE_MS);
  await steady(stage, daemons);
  await changes(stage, daemons);
  await restart(stage, daemons);
  await delay(SETTLE_MS);
  await steady(stage, daemons);
  const statuses = ["active", "unreachable", "degraded"];
  const counts = await Promise.all(statuses.map(async (status) => `${status} ${await stage.nodesIn(status)}`));
  say(`in the end: ${counts.join(", ")}`);
} finally {
  daemons?.stop();
  // Not killed, so that a profile is written.
  await stage.server.stop();
  await stage.remove();
}
