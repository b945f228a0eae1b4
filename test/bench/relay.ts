import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { parseArgs } from "node:util";
import { openBench } from "./bench.ts";
import { describeMachine } from "./describe-machine.ts";
import { spread } from "./statistics.ts";
import { startFairleadRelay } from "./targets/fairlead.ts";

/**
 * `node test/bench/relay.ts`: an engine on loopback called directly and through relay, tunnel and gateway, in one run, round by
 * round: small calls, streams, bulk both ways; and how soon the engine learns that a caller left. All programs share the machine.
 */

const { values: options } = parseArgs({
  options: { seconds: { type: "string", default: "4" }, rounds: { type: "string", default: "3" } },
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
const ABORTS = 30;

interface Place {
  readonly port: number;
  readonly prefix: string;
  readonly token: string;
}

const agent = new Agent({ keepAlive: true, maxSockets: 64 });

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

/** As often as it goes, on several connections. @returns the sum of what the calls return, a second. */
async function repeat(connections: number, once: () => Promise<number>): Promise<number> {
  const started = performance.now();
  const end = started + SECONDS * 1000;
  let sum = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() < end) sum += await once();
  };
  await Promise.all(Array.from({ length: connections }, worker));
  return (sum * 1000) / (performance.now() - started);
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

type Measure = (place: Place) => Promise<number>;

const SMALL = "small calls a second, 32 connections";
const MEASURES: Readonly<Record<string, Measure>> = {
  [SMALL]: (place) => repeat(CONNECTIONS, () => finish(call(place, "GET", "/small").end()).then(() => 1)),
  "stream chunks a second, 32 streams": (place) =>
    repeat(STREAMS, () =>
      finish(call(place, "GET", `/stream?count=${CHUNKS_A_STREAM}`).end()).then(() => CHUNKS_A_STREAM),
    ),
  "bulk down, MB/s, 4 at once": (place) =>
    repeat(BULK_CALLS, () =>
      finish(call(place, "GET", `/bulk?count=${BULK_PIECES}`).end()).then((bytes) => bytes / MEGABYTE),
    ),
  "bulk up, MB/s, 4 at once": (place) => repeat(BULK_CALLS, () => upload(place)),
};

/** Milliseconds from a caller's leaving to the engine's noticing, of one call. */
async function abortMs(place: Place, engineLog: () => Promise<number>): Promise<number> {
  const request = call(place, "GET", "/hang").end();
  request.on("error", () => undefined);
  await new Promise<void>((resolve) => {
    request.on("response", (answer) => {
      answer.on("error", () => undefined);
      answer.once("data", () => resolve());
    });
  });
  const told = engineLog();
  const leftAt = performance.timeOrigin + performance.now();
  request.destroy();
  return (await told) - leftAt;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

const bench = await openBench({ pinned: false, profileDir: undefined });
try {
  const program = new URL("targets/relay-engine-program.ts", import.meta.url).pathname;
  const engine = bench.processes.launch({ name: "engine", command: process.execPath, args: [program], core: 0 });
  const mockPort = Number(await engine.printed(/^(\d+)$/m));
  const relay = await startFairleadRelay({ ...bench, mockPort });
  const direct = { port: mockPort, prefix: "", token: "" };
  const through = { port: relay.port, prefix: relay.prefix ?? "", token: relay.key };
  say(`${describeMachine()}\n`);
  say("| work | direct | relayed | ratio |\n| --- | --- | --- | --- |");
  for (const [name, measure] of Object.entries(MEASURES)) {
    const figures: { direct: number; relayed: number }[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      figures.push({ direct: await measure(direct), relayed: await measure(through) });
    }
    const plain = figures.map((figure) => figure.direct);
    const relayed = figures.map((figure) => figure.relayed);
    const ratios = figures.map((figure) => figure.relayed / figure.direct);
    say(`| ${name} | ${spread(plain)} | ${spread(relayed)} | ${spread(ratios)} |`);
  }
  const aborts: number[] = [];
  for (let seen = 1; seen <= ABORTS; seen++) {
    const nth = new RegExp(`(?:left [\\d.]+\\n[^]*?){${seen - 1}}left ([\\d.]+)\\n`);
    aborts.push(await abortMs(through, async () => Number(await engine.printed(nth))));
  }
  say(`\nms from a caller's leaving to the engine's noticing, of ${ABORTS}: ${spread(aborts)}`);
  await relay.stop();
} finally {
  agent.destroy();
  await bench.close();
}
