import { monitorEventLoopDelay } from "node:perf_hooks";
import { pino } from "pino";
import { createGateway } from "../../packages/daemon/src/gateway/gateway.ts";
import { SimulatedDaemon } from "../support/simulated-daemon.ts";
import type { Facts } from "./facts.ts";
import { tellParent } from "./helper.ts";
import { turnWaitMs } from "./turn-wait.ts";

/** A daemon's link, tunnel and gateway in front of the hostile engine. */

export interface DaemonReport {
  readonly ready: boolean;
  /** Of the event loop since the report before. */
  readonly lagMs: number;
  /** Processor time of the process in that time. */
  readonly cpuMs: number;
  /** How long the main thread waited for a turn on a processor in that time. */
  readonly waitMs: number;
  readonly rssBytes: number;
  /** Open sockets, timers and the like. */
  readonly handles: number;
  readonly timers: number;
}

const REPORT_MS = 500;
const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();
let cpu = process.cpuUsage();
let waited = turnWaitMs(process.pid);
let daemon: SimulatedDaemon | null = null;

process.once("message", ({ ports, hostile }: Facts) => {
  const targets = { find: () => ({ host: "127.0.0.1", port: ports.hostileEngine, ready: true }) };
  const connect = { check: () => Promise.reject(new Error("nothing is relayed here")) };
  const handler = createGateway({ targets, connect, log: pino({ level: "silent" }) });
  daemon = new SimulatedDaemon(hostile.engine.node, { tunnel: true, handler });
});
process.once("disconnect", () => process.exit());

setInterval(() => {
  const used = process.cpuUsage(cpu);
  cpu = process.cpuUsage();
  const waitedBefore = waited;
  waited = turnWaitMs(process.pid);
  const resources = process.getActiveResourcesInfo();
  const timers = resources.filter((kind) => kind === "Timeout").length;
  tellParent({
    ready: daemon !== null && daemon.isLive && daemon.hasTunnel,
    lagMs: delay.max / 1e6,
    cpuMs: (used.user + used.system) / 1000,
    waitMs: waited - waitedBefore,
    rssBytes: process.memoryUsage.rss(),
    handles: resources.length - timers,
    timers,
  } satisfies DaemonReport);
  delay.reset();
}, REPORT_MS);
