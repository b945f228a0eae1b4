import type { Socket } from "node:net";
import type * as fc from "fast-check";
import type { Facts } from "./facts.ts";
import type { ReplyServer } from "./reply-server.ts";

/** One kind of attacker: what it may do, and how it is done. Moves are plain data, so that a run can be shown, shrunk and repeated. */
export interface Attack<Move extends object> {
  readonly name: string;
  /** What it generates. */
  readonly move: fc.Arbitrary<Move>;
  /** Rounds of every run, by what they do: inputs that once were faults, and others of their kind that random moves seldom hit. */
  readonly known: Readonly<Record<string, readonly Move[]>>;
  /** Resolves when the move is over. What it leaves open is closed at the round's end. */
  readonly perform: (move: Move, ground: Ground) => Promise<void>;
}

/** What a move finds in the attacker's process. */
export interface Ground {
  readonly facts: Facts;
  readonly upstream: ReplyServer;
  readonly engine: ReplyServer;
  readonly issuer: ReplyServer;
  /** Closed at the round's end. */
  readonly open: Set<Closable>;
  /** Messages, requests and frames that were sent: what the server may spend work on. */
  sent: number;
  /** What the attacker saw that must not be. */
  readonly findings: string[];
}

export interface Closable {
  destroy(): unknown;
}

/** Addresses that attackers come from; the first is also that of the honest nodes. */
export const ADDRESSES = ["127.0.0.1", "127.0.0.66", "127.0.0.67"] as const;

/** Resolves when everything written has left, or the socket is gone. */
export function drained(socket: Socket): Promise<void> {
  if (socket.destroyed || socket.writableLength === 0) return Promise.resolve();
  return new Promise((resolve) => {
    socket.once("drain", () => resolve());
    socket.once("close", () => resolve());
  });
}
