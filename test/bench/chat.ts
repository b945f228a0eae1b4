import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { openBench } from "./bench.ts";
import { keepAlive, type StreamedAnswer, streamCall } from "./chat-call.ts";
import { describeMachine } from "./describe-machine.ts";
import { cpuSeconds, memoryMb } from "./machine.ts";
import { roundedText } from "./statistics.ts";
import { type ChatServer, CONTEXT_TOKENS, startFairleadChat } from "./targets/fairlead.ts";

/**
 * `node test/bench/chat.ts`: what a chat turn adds to the first token of the same call on the inference host, in a session with many
 * stored messages; and what many streams at once take on one process. The mock and this client share core 0; the server has core 1.
 */

const { values: options } = parseArgs({
  options: {
    messages: { type: "string", default: "10000" },
    turns: { type: "string", default: "300" },
    streams: { type: "string", default: "500" },
    rounds: { type: "string", default: "3" },
    chunks: { type: "string", default: "100" },
    profile: { type: "string" },
    "no-pin": { type: "boolean", default: false },
  },
});
const MESSAGES = Number(options.messages);
const TURNS = Number(options.turns);
const STREAMS = Number(options.streams);
const ROUNDS = Number(options.rounds);
const CHUNKS = Number(options.chunks);

const SHORT = "@mock{c=1,d=0} What do you make of it, and what would you do in my place?";
const PACED = `@mock{c=${CHUNKS},d=100} Tell me a story.`;
const HEAP_MB = 256;
const SETTLE_MS = 3000;
const SAMPLE_MS = 100;
const CHARACTERS_PER_TOKEN = 4;

type Dialect = "completions" | "responses";

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

const one = keepAlive(1);

interface TurnCall {
  readonly dialect: Dialect;
  readonly text: string;
  readonly session?: string;
}

function turn(server: ChatServer, { dialect, text, session }: TurnCall, agent = one): Promise<StreamedAnswer> {
  const body = JSON.stringify({ messages: [{ role: "user", content: text }], model: server.model, stream: true });
  return streamCall({
    url: `${server.platformUrl}/v1/chat/${dialect}`,
    agent,
    body,
    headers: {
      authorization: `Bearer ${server.token}`,
      "content-type": "application/json",
      "service-project-id": server.projectId,
      ...(session === undefined ? {} : { "service-session-id": session }),
    },
  });
}

/** The same call as a program makes it: with the history in its own hands. */
function inference(server: ChatServer, dialect: Dialect, history: readonly object[]): Promise<StreamedAnswer> {
  const messages = [...history, { role: "user", content: SHORT }];
  const asked = dialect === "responses" ? { input: messages } : { messages };
  return streamCall({
    url: `${server.modelsUrl}/v1/${dialect === "responses" ? "responses" : "chat/completions"}`,
    agent: one,
    body: JSON.stringify({ model: server.model, stream: true, ...asked }),
    headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json" },
  });
}

/** A session with so many messages, made by turns. */
async function fill(server: ChatServer, messages: number): Promise<string> {
  let session: string | undefined;
  for (let stored = 0; stored < messages; stored += 2) {
    const answer = await turn(server, { dialect: "completions", text: SHORT, ...(session ? { session } : {}) });
    session = answer.session;
  }
  if (session === undefined) throw new Error("a session needs a message");
  return session;
}

/** As much of it as goes into a turn's call. */
function historyOf(messages: number): object[] {
  const question = { role: "user", content: SHORT };
  const answer = { role: "assistant", content: "@T0000000000000000 word" };
  const tokens = (SHORT.length + answer.content.length) / CHARACTERS_PER_TOKEN;
  const turns = Math.min(messages / 2, Math.floor(CONTEXT_TOKENS / tokens));
  return Array.from({ length: turns }).flatMap(() => [question, answer]);
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN;
}

async function firstTokens(server: ChatServer, messages: number): Promise<void> {
  const session = await fill(server, messages);
  const history = historyOf(messages);
  for (const dialect of ["completions", "responses"] as const) {
    const host: number[] = [];
    const chat: number[] = [];
    // In turn, so that whatever else the machine does falls on both.
    for (let n = 0; n < TURNS; n++) {
      host.push((await inference(server, dialect, history)).firstMs);
      chat.push((await turn(server, { dialect, text: SHORT, session })).firstMs);
    }
    const [hostMs, chatMs] = [quantile(host, 0.5), quantile(chat, 0.5)];
    const cells = [hostMs, chatMs, chatMs - hostMs, quantile(host, 0.99), quantile(chat, 0.99)].map(roundedText);
    say(`| ${messages.toLocaleString("en-US")} | ${dialect} | ${cells.join(" | ")} |`);
  }
}

/** @returns the highest memory that was seen meanwhile. */
async function peakMb<T>(pid: number, work: Promise<T>): Promise<{ readonly peak: number; readonly result: T }> {
  let peak = memoryMb(pid);
  let isDone = false;
  const done = work.finally(() => void (isDone = true));
  while (!isDone) {
    peak = Math.max(peak, memoryMb(pid));
    await Promise.race([sleep(SAMPLE_MS), done]);
  }
  return { peak, result: await done };
}

async function manyStreams(server: ChatServer, round: number): Promise<void> {
  const agent = keepAlive(STREAMS);
  const [before, cpuBefore] = [memoryMb(server.pid), cpuSeconds(server.pid)];
  const all = Array.from({ length: STREAMS }, () => turn(server, { dialect: "responses", text: PACED }, agent));
  const { peak, result } = await peakMb(server.pid, Promise.all(all));
  const cpu = cpuSeconds(server.pid) - cpuBefore;
  agent.destroy();
  await sleep(SETTLE_MS);
  const chunks = STREAMS * CHUNKS;
  const first = result.map(({ firstMs }) => firstMs);
  const figures = [
    quantile(first, 0.5),
    quantile(first, 0.99),
    (cpu / chunks) * 1e6,
    before,
    peak,
    memoryMb(server.pid),
  ];
  say(`| ${round} | ${chunks.toLocaleString("en-US")} | ${figures.map(roundedText).join(" | ")} |`);
}

const pinned = !options["no-pin"];
const bench = await openBench({ pinned, profileDir: options.profile });
try {
  if (pinned) spawnSync("taskset", ["-a", "-c", "-p", "0", String(process.pid)]);
  const server = await startFairleadChat(bench, HEAP_MB);
  say(`${describeMachine()}; ${TURNS} turns, a context of ${CONTEXT_TOKENS} tokens, SQLite, ${HEAP_MB} MB of heap\n`);
  say("| stored messages | dialect | inference host p50, ms | chat p50, ms | added | host p99 | chat p99 |");
  say("| --- | --- | --- | --- | --- | --- | --- |");
  await firstTokens(server, MESSAGES);
  say(`\n${STREAMS} streams at once, each a turn of its own session, a chunk every 100 ms\n`);
  say("| round | chunks | first token p50, ms | p99 | CPU, µs a chunk | memory before, MB | highest | 3 s after |");
  say("| --- | --- | --- | --- | --- | --- | --- | --- |");
  for (let round = 1; round <= ROUNDS; round++) await manyStreams(server, round);
} finally {
  one.destroy();
  await bench.close();
}
