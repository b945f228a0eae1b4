import type { Bench } from "./bench.ts";
import { startFairlead, startFairleadHttp, startFairleadRelay } from "./targets/fairlead.ts";
import { missingNginx, startNginx } from "./targets/nginx.ts";
import { startNodePipe } from "./targets/node-pipe.ts";

export interface Target {
  readonly name: string;
  readonly about: string;
  /** Why this machine cannot run it, or null. */
  readonly missing?: () => string | null;
  start(bench: Bench): Promise<RunningTarget>;
}

/** One program of a target. */
export interface Part {
  readonly name: string;
  readonly pids: readonly number[];
}

export interface RunningTarget {
  readonly port: number;
  readonly key: string;
  readonly model: string;
  /** Before `/v1/chat/completions`. */
  readonly prefix?: string;
  /** The gateway itself first. */
  readonly parts: readonly Part[];
  stop(): Promise<void>;
}

/** What the mock takes: any key and any model. */
const ANY = { key: "bench", model: "mock-model" };

const all: readonly Target[] = [
  {
    name: "direct",
    about: "no gateway: the mock upstream itself",
    start: ({ mockPort }) => Promise.resolve({ ...ANY, port: mockPort, parts: [], stop: () => Promise.resolve() }),
  },
  {
    name: "nginx",
    about: "a plain reverse proxy in C, one worker",
    missing: missingNginx,
    start: async (bench) => ({ ...ANY, ...(await startNginx(bench)) }),
  },
  {
    name: "node-pipe",
    about: "a bare proxy in Node: node:http on both sides and two pipes; no keys, no checks",
    start: async (bench) => ({ ...ANY, ...(await startNodePipe(bench)) }),
  },
  {
    name: "fairlead",
    about: "the server with its store and project keys, and through the tunnel a daemon's gateway",
    start: startFairlead,
  },
  {
    name: "fairlead-relay",
    about: "the same node's engine from outside: the relay on the platform host, without accounts, limits and models",
    start: startFairleadRelay,
  },
  {
    name: "fairlead-http",
    about: "the same server, and the mock as a provider that it calls over HTTP: one hop",
    start: startFairleadHttp,
  },
];

export const TARGETS: ReadonlyMap<string, Target> = new Map(all.map((target) => [target.name, target]));
