import { setTimeout as delay } from "node:timers/promises";
import { ensureDemoImage } from "../support/docker.ts";
import { Installation } from "../support/installation.ts";
import { cpuSeconds, memoryMb } from "./machine.ts";

/**
 * `node test/bench/node.ts`, after a build and with Docker: how long from `POST /v1/nodes` to `active` with the image present, and
 * what an idle daemon costs.
 */

const ROUNDS = 5;
const SETTLE_MS = 15_000;
const IDLE_MS = 60_000;

interface Cost {
  readonly rssMb: number;
  readonly cpuSeconds: number;
}

const costOf = (pid: number): Cost => ({ rssMb: memoryMb(pid), cpuSeconds: cpuSeconds(pid) });

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

await ensureDemoImage();
const installation = await Installation.start();
try {
  const seconds: number[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    const started = performance.now();
    const machine = await installation.addMachine(`box ${round}`);
    machine.startDaemon();
    await machine.untilActive();
    seconds.push((performance.now() - started) / 1000);
    if (round < ROUNDS) await machine.remove();
    else {
      await delay(SETTLE_MS);
      const before = costOf(machine.daemon.pid);
      await delay(IDLE_MS);
      const after = costOf(machine.daemon.pid);
      const share = ((after.cpuSeconds - before.cpuSeconds) / (IDLE_MS / 1000)) * 100;
      say(`idle daemon: ${after.rssMb.toFixed(1)} MB RSS, ${share.toFixed(2)} % of a core`);
    }
  }
  const sorted = seconds.toSorted((a, b) => a - b);
  say(`POST /v1/nodes to active: ${sorted.map((value) => value.toFixed(2)).join(", ")} s (daemon's start included)`);
} finally {
  await installation.remove();
}
