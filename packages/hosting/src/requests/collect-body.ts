import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { DomainError } from "@fairlead/protocol/errors";
import type { Ticket } from "./admission.ts";
import type { UploadPace } from "./upload-pace.ts";

/** Overhead of a Buffer, counted so that tiny chunks cannot exceed the budget. */
const PIECE_OVERHEAD_BYTES = 128;

/** Maximum reserved in advance: announcing a large body must not take memory from others. */
const STEP_BYTES = 256 * 1024;

export interface BodyLimits {
  /** Reserves memory for received bytes. */
  readonly ticket: Ticket;
  /** For the stored body. */
  readonly maxBytes: number;
  readonly pace: UploadPace;
}

export interface Upload {
  /** The request itself, or its decoder. */
  readonly source: Readable;
  readonly request: IncomingMessage;
  /** The meaning of a source error; null: the client disconnected. */
  readonly explain: ((error: Error) => DomainError) | null;
}

/**
 * Reads a body as chunks.
 * @returns null if the client disconnected first.
 * @throws DomainError `request_too_large`, `overloaded`, `request_timeout`, without reading further.
 */
export function collectBody({ source, request, explain }: Upload, limits: BodyLimits): Promise<Buffer[] | null> {
  return new Promise((resolve, reject) => {
    const collected = new Collected(limits, source === request ? declaredLength(request) : 0);
    // The request lives as long as the response: a remaining listener would keep the body in memory.
    const settle = (): void => {
      unwatch();
      source.off("data", onData).off("end", onEnd).off("error", onFault);
      request.off("error", onGone).off("close", onGone);
    };
    const onFailed = (error: unknown): void => {
      settle();
      reject(error);
    };
    const onFault = (error: Error): void => {
      settle();
      if (explain === null) resolve(null);
      else reject(explain(error));
    };
    const onData = (piece: Buffer): void => {
      try {
        collected.add(piece);
      } catch (error) {
        onFailed(error);
      }
    };
    const onEnd = (): void => {
      settle();
      resolve(collected.pieces);
    };
    const onGone = (): void => {
      // A complete request also closes, while its body is still being decompressed.
      if (request.complete) return;
      settle();
      resolve(null);
    };
    const unwatch = limits.pace.watch(request, onFailed);
    source.on("data", onData).once("end", onEnd).once("error", onFault);
    request.once("error", onGone).once("close", onGone);
  });
}

/** From the headers; 0 if absent. */
export function declaredLength(request: IncomingMessage): number {
  return Number(request.headers["content-length"] ?? 0);
}

export function tooLarge(maxBytes: number): DomainError {
  return new DomainError("request_too_large", `The body exceeds the limit of ${maxBytes} bytes.`);
}

/** The chunks so far, within the limits. */
class Collected {
  readonly pieces: Buffer[] = [];
  readonly #limits: BodyLimits;
  readonly #declared: number;
  #bytes = 0;
  #reserved = 0;

  constructor(limits: BodyLimits, declared: number) {
    this.#limits = limits;
    this.#declared = declared;
  }

  /** @throws DomainError */
  add(piece: Buffer): void {
    const { ticket, maxBytes: most } = this.#limits;
    this.pieces.push(piece);
    this.#bytes += piece.length;
    const held = this.#bytes + this.pieces.length * PIECE_OVERHEAD_BYTES;
    if (this.#bytes > most || held > 2 * most + PIECE_OVERHEAD_BYTES) throw tooLarge(most);
    if (held <= this.#reserved) return;
    this.#reserved = Math.max(held, Math.min(this.#declared, this.#reserved + STEP_BYTES));
    ticket.holdBytes(this.#reserved);
  }
}
