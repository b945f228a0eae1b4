import { gzipSync } from "node:zlib";
import * as fc from "fast-check";
import { seededRandom } from "../support/money-calls.ts";

/** What hostile upstreams and engines reply. */

/** `amount`: spaces, headers, brackets or bytes, as the kind has it. `seed`: of what is random. */
export interface Reply {
  readonly kind: ReplyKind;
  readonly amount: number;
  readonly seed: number;
  /** Whether it is sent in small pieces. */
  readonly drip: boolean;
}

const AMOUNTS = [1, 64, 3500, 20_000, 60_000, 1_000_000, 15_000_000];

const GOOD_CHAT = {
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};
const GOOD_RESPONSE = {
  id: "resp_1",
  object: "response",
  created_at: 1,
  model: "m",
  status: "completed",
  output: [
    {
      type: "message",
      id: "msg_1",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "Hello", annotations: [] }],
    },
  ],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
};
/** So much of headers and events as an attacker sends without spending more than the server. */
const MOST_ITEMS = 200_000;
const STATUS = "HTTP/1.1 200 OK\r\n";

interface Parts {
  readonly amount: number;
  /** The same, with a limit for what is repeated. */
  readonly items: number;
  /** A good body. */
  readonly good: string;
  readonly random: () => number;
}

type Pieces = readonly (string | Buffer)[];

const REPLIES = {
  good: ({ good }: Parts) => json(good),
  mutated: ({ good, random }: Parts) => [mutate(json(good).join(""), random)],
  /** These two are the server's. */
  silence: () => [],
  reset: () => [],

  "spaces-then-control": ({ amount, good }: Parts) => whole(`a:${" ".repeat(amount)}\x01\r\n`, good),
  "inner-spaces": ({ amount, good }: Parts) => whole(`a: x${" ".repeat(amount)}y\r\n`, good),
  "many-headers": ({ items, good }: Parts) => whole("a: b\r\n".repeat(items), good),
  "long-name": ({ amount, good }: Parts) => whole(`${"a".repeat(amount)}: b\r\n`, good),
  "long-value": ({ amount, good }: Parts) => whole(`a: ${"b".repeat(amount)}\r\n`, good),
  "two-lengths": ({ good }: Parts) => whole("content-length: 1\r\n", good),
  "length-and-chunked": ({ good }: Parts) => whole("transfer-encoding: chunked\r\n", good),
  "too-long": ({ amount, good }: Parts) => [...whole("", good), "x".repeat(amount)],
  "too-short": ({ amount, good }: Parts) => [`${STATUS}content-length: ${good.length + amount}\r\n\r\n${good}`],
  "status-spaces": ({ amount }: Parts) => [`HTTP/1.1 200 ${" ".repeat(amount)}\x01\r\n\r\n`],
  informational: ({ items, good }: Parts) => [
    "HTTP/1.1 103 Early Hints\r\na: b\r\n\r\n".repeat(items),
    ...whole("", good),
  ],
  "half-head": ({ items }: Parts) => [STATUS, "a: ".repeat(items)],
  switching: ({ items }: Parts) => ["HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", "x".repeat(items)],

  "chunk-extension": ({ items, good }: Parts) =>
    chunked(`${good.length.toString(16)};${"x ".repeat(items)}\r\n${good}\r\n0\r\n\r\n`),
  "chunk-zeros": ({ amount, good }: Parts) =>
    chunked(`${"0".repeat(amount)}${good.length.toString(16)}\r\n${good}\r\n0\r\n\r\n`),
  "chunk-size": ({ amount, good }: Parts) => chunked(`${"f".repeat(Math.min(16, amount))}\r\n${good}`),
  "tiny-chunks": ({ items }: Parts) => chunked(`${"1\r\n \r\n".repeat(items)}0\r\n\r\n`),
  "trailer-spaces": ({ amount }: Parts) => chunked(`0\r\na:${" ".repeat(amount)}\x01\r\n\r\n`),
  "many-trailers": ({ items }: Parts) => chunked(`0\r\n${"a: b\r\n".repeat(items)}\r\n`),

  "nested-usage": ({ amount }: Parts) => json(`{"usage":${nested(amount)}}`),
  "nested-choices": ({ amount }: Parts) => {
    const depth = Math.floor(amount / 6);
    return json(`{"choices":[{"message":${'{"a":'.repeat(depth)}1${"}".repeat(depth)}}],"output":[]}`);
  },
  "wide-object": ({ items }: Parts) => json(`{${Array.from({ length: items }, (_, n) => `"k${n}":[]`).join(",")}}`),
  "long-text": ({ amount, good }: Parts) => json(good.replace("Hello", "Hello ".repeat(amount / 6 + 1))),
  "gzip-bomb": ({ amount }: Parts) => json(gzipSync(Buffer.alloc(amount, "[")), "content-encoding: gzip\r\n"),
  "gzip-garbage": ({ random }: Parts) =>
    json(Buffer.from(Array.from({ length: 100 }, () => 256 * random())), "content-encoding: gzip, br\r\n"),

  "nested-event": ({ amount }: Parts) => events([`data: {"choices":${nested(amount)}}\n\n`]),
  "long-event": ({ amount }: Parts) => events(["data: ", "x".repeat(amount), "\n\n"]),
  "many-events": ({ items }: Parts) => events([chunkEvent.repeat(items), "data: [DONE]\n\n"]),
  "many-lines": ({ amount, items }: Parts) => events(["\n".repeat(amount), "data:\n".repeat(items), "\n"]),
  "carriage-returns": ({ amount, items }: Parts) => events(["\r".repeat(amount), "data: 1\r".repeat(items)]),
} as const satisfies Readonly<Record<string, (parts: Parts) => Pieces>>;

type ReplyKind = keyof typeof REPLIES;
const REPLY_KINDS = Object.keys(REPLIES) as ReplyKind[];

export const replyArbitrary: fc.Arbitrary<Reply> = fc.record({
  kind: fc.constantFrom(...REPLY_KINDS),
  amount: fc.oneof(fc.constantFrom(...AMOUNTS), fc.nat(100_000)),
  seed: fc.nat(2 ** 31),
  drip: fc.boolean(),
});

/** @param path of the request: what a good response looks like. @returns pieces, in the order in which they are sent. */
export function replyBytes({ kind, amount, seed }: Reply, path: string): Pieces {
  const good = JSON.stringify(path.includes("responses") ? GOOD_RESPONSE : GOOD_CHAT);
  const pieces: (parts: Parts) => Pieces = REPLIES[kind];
  return pieces({ amount, items: Math.min(amount, MOST_ITEMS), good, random: seededRandom(seed) });
}

/** @param lines of the head, each with its end. */
function whole(lines: string, body: string): Pieces {
  return [`${STATUS}${lines}content-length: ${body.length}\r\n\r\n${body}`];
}

function chunked(body: string): Pieces {
  return [`${STATUS}transfer-encoding: chunked\r\n\r\n`, body];
}

const chunkEvent = `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content: "a" } }] })}\n\n`;

function nested(amount: number): string {
  return "[".repeat(amount / 2) + "]".repeat(amount / 2);
}

function json(body: string | Buffer, more = ""): Pieces {
  const length = `content-length: ${Buffer.byteLength(body)}\r\n`;
  return [`${STATUS}content-type: application/json\r\n${more}${length}\r\n`, body];
}

function events(texts: readonly string[]): Pieces {
  return [`${STATUS}content-type: text/event-stream\r\nconnection: close\r\n\r\n`, ...texts];
}

/** Changes, doubles or drops a few bytes. */
export function mutate(text: string, random: () => number): Buffer {
  const bytes = [...Buffer.from(text)];
  const changes = 1 + Math.floor(8 * random());
  for (let change = 0; change < changes; change++) {
    const at = Math.floor(random() * bytes.length);
    const byte = Math.floor(256 * random());
    const kept = random() < 0.5 ? [byte] : random() < 0.5 ? [] : [bytes[at] ?? 0, bytes[at] ?? 0];
    bytes.splice(at, 1, ...kept);
  }
  return Buffer.from(bytes);
}
