import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { parseArgs } from "node:util";
import { weighBuffersWithBallast } from "../../packages/daemon/src/process/garbage-collection.ts";
import { type Bench, openBench } from "./bench.ts";
import { describeMachine } from "./describe-machine.ts";
import { cpuSeconds, memoryMb, processTree } from "./machine.ts";
import { median, roundedText, spread } from "./statistics.ts";
import { startFairleadRelay } from "./targets/fairlead.ts";
import { missingHaproxy, startHaproxy } from "./targets/haproxy.ts";
import { missingNginx, startNginx } from "./targets/nginx.ts";
import { startNodePipe } from "./targets/node-pipe.ts";
import type { RunningTarget } from "./targets.ts";

/**
 * `node test/bench/relay.ts`: an engine on loopback called directly and through relay, tunnel and gateway, in one run, round by
 * round: small calls, streams, bulk both ways, with the CPU of every program on the way; how soon the engine learns that a caller
 * left; and memory where one of 100 callers never reads. All programs share the machine: two plain proxies one behind the other
 * (bare Node, nginx, and HAProxy that only joins connections, in the kernel) tell what two hops can reach on it.
 */

// As the programs on the way do.
weighBuffersWithBallast();
const { values: options } = parseArgs({
  options: {
    seconds: { type: "string", default: "4" },
    rounds: { type: "string", default: "3" },
    /** Only the work whose name has this text. */
    work: { type: "string", default: "" },
    /** Folder for CPU profiles of control plane and daemon. */
    profile: { type: "string" },
  },
});
const SECONDS = Number(options.seconds);
const ROUNDS = Number(options.rounds);
const CONNECTIONS = 32;
const STREAMS = 32;
const CHUNKS_A_STREAM = 2000;
const BULK_CALLS = 4;
const BULK_PIECES = 512;
const PIECE = Buffer.alloc(64 * 1024, "x");
const MEGABYTE = 1e6;
const ABORTS = 200;
const CALLERS = 100;

interface Place {
  readonly port: number;
  readonly prefix: string;
  readonly token: string;
}

const agent = new Agent({ keepAlive: true, maxSockets: 128 });

function call(place: Place, method: string, path: string): ClientRequest {
  const headers = { authorization: `Bearer ${place.token}` };
  return httpRequest({ host: "127.0.0.1", port: place.port, method, path: place.prefix + path, headers, agent });
}

/** Reads the answer away. @returns its length in bytes. @throws where it is no good or not whole. */
function finish(request: ClientRequest): Promise<number> {
  return new Promise((resolve, reject) => {
    request.on("error", reject);
    request.on("response", (answer: IncomingMessage) => {
      let bytes = 0;
      answer.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      answer.on("error", reject);
      answer.on("end", () => {
        if (answer.statusCode === 200) resolve(bytes);
        else reject(new Error(`an answer with ${answer.statusCode}`));
      });
    });
  });
}

/** As often as it goes, on several connections. @returns the sum of what the calls return. */
async function repeat(connections: number, once: () => Promise<number>): Promise<number> {
  const end = performance.now() + SECONDS * 1000;
  let sum = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() < end) {
      const units = await once();
      sum += units;
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  return sum;
}

function upload(place: Place): Promise<number> {
  const request = call(place, "POST", "/upload");
  request.setHeader("content-length", PIECE.length * BULK_PIECES);
  let left = BULK_PIECES;
  const write = (): void => {
    while (left-- > 0) if (!request.write(PIECE)) return;
    request.end();
  };
  request.on("drain", write);
  const finished = finish(request);
  write();
  return finished.then(() => (PIECE.length * BULK_PIECES) / MEGABYTE);
}

interface Work {
  readonly unit: string;
  readonly run: (place: Place) => Promise<number>;
}

const smallCall = (place: Place): Promise<number> => finish(call(place, "GET", "/small").end()).then(() => 1);
const WORKS: Readonly<Record<string, Work>> = {
  "small calls, 32 connections": { unit: "call", run: (place) => repeat(CONNECTIONS, () => smallCall(place)) },
  "32 streams": {
    unit: "chunk",
    run: (place) =>
      repeat(STREAMS, () =>
        finish(call(place, "GET", `/stream?count=${CHUNKS_A_STREAM}`).end()).then(() => CHUNKS_A_STREAM),
      ),
  },
  "bulk down, 4 at once": {
    unit: "MB",
    run: (place) =>
      repeat(BULK_CALLS, () =>
        finish(call(place, "GET", `/bulk?count=${BULK_PIECES}`).end()).then((bytes) => bytes / MEGABYTE),
      ),
  },
  "bulk up, 4 at once": { unit: "MB", run: (place) => repeat(BULK_CALLS, () => upload(place)) },
};

/** The client's own children are other programs. */
const cpuOf = (pid: number): number => {
  const { user, system } = process.cpuUsage();
  if (pid === process.pid) return (user + system) / 1e6;
  return processTree(pid).reduce((sum, each) => sum + cpuSeconds(each), 0);
};

/** Units a second, and the CPU that each program spent on one, in µs. */
interface Figures {
  readonly perSecond: number;
  readonly cpu: readonly number[];
}

async function measure({ run }: Work, place: Place, programs: readonly number[]): Promise<Figures> {
  const used = (): number[] => programs.map(cpuOf);
  const [before, started] = [used(), performance.now()];
  const units = await run(place);
  const seconds = (performance.now() - started) / 1000;
  return { perSecond: units / seconds, cpu: used().map((cpu, at) => ((cpu - (before[at] ?? 0)) * 1e6) / units) };
}

/** Milliseconds from a caller's leaving to the engine's noticing, of one call. */
async function abortMs(place: Place, name: string, engineSaid: (pattern: RegExp) => Promise<string>): Promise<number> {
  const request = call(place, "GET", `/hang?name=${name}`).end();
  request.on("error", () => undefined);
  await new Promise<void>((resolve) => {
    request.on("response", (answer) => {
      answer.on("error", () => undefined);
      answer.once("data", () => resolve());
    });
  });
  const leftAt = performance.timeOrigin + performance.now();
  request.destroy();
  return Number(await engineSaid(new RegExp(`^left ${name} ([\\d.]+)$`, "m"))) - leftAt;
}

/** An endless answer of which only the head is read. */
async function neverRead(place: Place): Promise<ClientRequest> {
  const request = call(place, "GET", "/bulk?count=1000000").end();
  request.on("error", () => undefined);
  const answer = await new Promise<IncomingMessage>((resolve) => request.once("response", resolve));
  answer.on("error", () => undefined).pause();
  return request;
}

function cpuText(figures: readonly Figures[]): string {
  const sums = figures.map(({ cpu }) => cpu.reduce((sum, part) => sum + part, 0));
  const parts = figures[0]?.cpu.map((_part, at) => roundedText(median(figures.map(({ cpu }) => cpu[at] ?? 0)) ?? 0));
  return `${spread(sums)} = ${parts?.join(" + ")}`;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** A way to the engine. */
interface Way {
  readonly name: string;
  readonly place: Place;
  /** Its programs, the first one first. */
  readonly pids: readonly number[];
}

type Starter = (bench: Bench) => Promise<Pick<RunningTarget, "port" | "parts" | "stop">>;

/** Two hops of a proxy that checks nothing. */
async function twice(name: string, start: Starter, on: Bench): Promise<Way & Pick<RunningTarget, "stop">> {
  const inner = await start(on);
  const outer = await start({ ...on, mockPort: inner.port });
  // Of each its first process, whose children count with it.
  const pids = [outer, inner].flatMap(({ parts }) => parts.flatMap((part) => part.pids.slice(0, 1)));
  const stop = async (): Promise<void> => {
    await outer.stop();
    await inner.stop();
  };
  return { name, place: { port: outer.port, prefix: "", token: "" }, pids, stop };
}

/** One work by every way, in turn, as lines of a table, after a round of warming up. The first way is what the others are held against. */
async function compare(name: string, work: Work, ways: readonly Way[]): Promise<void> {
  // Programs that have not run yet are slower, the more of them the slower.
  for (const { place, pids } of ways) await measure(work, place, pids);
  const figures: Figures[][] = ways.map(() => []);
  for (let round = 0; round < ROUNDS; round++)
    for (const [at, { place, pids }] of ways.entries()) figures[at]?.push(await measure(work, place, pids));
  for (const [at, way] of ways.entries()) {
    const own = figures[at] ?? [];
    const ratio = spread(own.map(({ perSecond }, round) => perSecond / (figures[0]?.[round]?.perSecond ?? perSecond)));
    const speed = spread(own.map(({ perSecond }) => perSecond));
    say(`| ${name}, ${work.unit} | ${way.name} | ${speed} | ${ratio} | ${cpuText(own)} |`);
  }
}

const bench = await openBench({ pinned: false, profileDir: options.profile });
try {
  const program = new URL("targets/relay-engine-program.ts", import.meta.url).pathname;
  const engine = bench.processes.launch({ name: "engine", command: process.execPath, args: [program], core: 0 });
  const mockPort = Number(await engine.printed(/^(\d+)$/m));
  const onEngine = { ...bench, mockPort };
  const relay = await startFairleadRelay(onEngine);
  const through = { port: relay.port, prefix: relay.prefix ?? "", token: relay.key };
  const parts = relay.parts.flatMap(({ pids }) => pids);
  const proxies = [await twice("two bare Node proxies", startNodePipe, onEngine)];
  if (missingNginx() === null) proxies.push(await twice("two nginx", startNginx, onEngine));
  if (missingHaproxy() === null) proxies.push(await twice("two HAProxy, bytes alone", startHaproxy, onEngine));
  const between: readonly Way[] = [
    { name: "direct", place: { port: mockPort, prefix: "", token: "" }, pids: [] },
    { name: "relay", place: through, pids: parts },
    ...proxies,
  ];
  const ways = between.map((way) => ({ ...way, pids: [process.pid, ...way.pids, engine.pid] }));
  say(`${describeMachine()}\n`);
  say("CPU in µs a unit: client + what lies between (control plane + daemon) + engine.\n");
  say("| work, unit | way | a second | ÷ direct | CPU |");
  say("| --- | --- | --- | --- | --- |");
  for (const [name, work] of Object.entries(WORKS).filter(([each]) => each.includes(options.work)))
    await compare(name, work, ways);
  const aborts: number[] = [];
  for (let at = 0; at < ABORTS; at++) aborts.push(await abortMs(through, String(at), (text) => engine.printed(text)));
  const sorted = aborts.toSorted((a, b) => a - b);
  const p99 = sorted[Math.ceil(ABORTS * 0.99) - 1] ?? 0;
  say(
    `\nms from a caller's leaving to the engine's noticing, of ${ABORTS}: ${spread(aborts)}, p99 ${roundedText(p99)}`,
  );
  const memory = (): string => parts.map((pid) => roundedText(memoryMb(pid))).join(" and ");
  const others = (callers: number): Promise<number> => repeat(callers, () => smallCall(through));
  for (let warm = 0; warm < ROUNDS; warm++) await others(CALLERS);
  say(`MB of control plane and daemon, ${CALLERS} callers that read: ${memory()}`);
  const silent = await neverRead(through);
  for (let round = 0; round < ROUNDS; round++) await others(CALLERS - 1);
  say(`the same, one of them never reading: ${memory()}`);
  silent.destroy();
  for (const started of [relay, ...proxies]) await started.stop();
} finally {
  agent.destroy();
  await bench.close();
}
