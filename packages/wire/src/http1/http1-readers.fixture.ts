import { request } from "node:http";
import { Duplex } from "node:stream";
import { Http1Answer } from "./http1-answer.ts";
import { MalformedAnswer, SINGLE_HEADERS } from "./response-head.ts";

type Field = readonly [name: string, values: readonly string[]];

/** What a reader made of the bytes of one response, which are followed by the end of the connection. */
export interface Reading {
  /** Null where no head was accepted. */
  readonly head: {
    readonly status: number /** By name; the values in their order. */;
    readonly headers: readonly Field[];
  } | null;
  readonly body: string;
  /** The response was accepted to its end. */
  readonly isWhole: boolean;
}

export function readByFairlead(pieces: readonly Buffer[], forHead: boolean): Reading {
  const read: { head: Reading["head"]; body: string; isWhole: boolean } = { head: null, body: "", isWhole: false };
  const answer = new Http1Answer({
    onHeaders: (status, headers) => {
      read.head = {
        status,
        headers: byName(Object.entries(headers).map(([name, value]) => [name, [value ?? []].flat()])),
      };
    },
    onData: (chunk) => {
      read.body += chunk.toString("latin1");
      return true;
    },
    onEnd: () => {
      read.isWhole = true;
    },
  });
  answer.expect(forHead);
  try {
    for (const piece of pieces) if (!read.isWhole) answer.push(piece);
    if (!read.isWhole) answer.close();
  } catch (error) {
    if (!(error instanceof MalformedAnswer)) throw error;
  }
  return read;
}

/** A connection in memory, of which only one direction matters. */
class OneWay extends Duplex {
  override _read(): void {}

  override _write(_chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    done();
  }
}

/** Limits that are looser than ours, so that every difference is one of syntax. */
const NODE_LIMITS = { maxHeaderSize: 1024 * 1024 };

export function readByNode(pieces: readonly Buffer[], forHead: boolean): Promise<Reading> {
  const { promise, resolve } = Promise.withResolvers<Reading>();
  const socket = new OneWay();
  let read: Reading = { head: null, body: "", isWhole: false };
  const asked = request({
    ...NODE_LIMITS,
    method: forHead ? "HEAD" : "GET",
    host: "node.test",
    createConnection: () => socket,
  });
  asked.on("response", (response) => {
    const fields = new Map<string, string[]>();
    for (let at = 0; at < response.rawHeaders.length; at += 2) {
      const name = (response.rawHeaders[at] ?? "").toLowerCase();
      fields.set(name, [...(fields.get(name) ?? []), response.rawHeaders[at + 1] ?? ""]);
    }
    const headers = byName([...fields].map(([name, values]) => [name, combined(name, values)]));
    read = { head: { status: response.statusCode ?? 0, headers }, body: "", isWhole: false };
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.on("error", () => undefined);
    response.on("close", () => {
      resolve({ ...read, body: Buffer.concat(chunks).toString("latin1"), isWhole: response.complete });
    });
  });
  // Also told when bytes follow a complete response, which stays complete.
  asked.on("error", () => {
    if (read.head === null) resolve(read);
  });
  asked.on("upgrade", () => resolve(read));
  asked.end();
  asked.once("socket", () => {
    for (const piece of pieces) socket.push(piece);
    socket.push(null);
  });
  return promise;
}

function combined(name: string, values: readonly string[]): readonly string[] {
  if (name === "set-cookie") return values;
  return SINGLE_HEADERS.has(name) ? values.slice(0, 1) : [values.join(", ")];
}

function byName(fields: readonly Field[]): readonly Field[] {
  return fields.toSorted(([a], [b]) => (a < b ? -1 : 1));
}
