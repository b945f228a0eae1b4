import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { DomainError } from "@fairlead/protocol/errors";
import type { Ticket } from "./admission.ts";
import { decoderFor, notDecodable } from "./content-decoder.ts";

/** What one Buffer costs beside its bytes: a body in tiny pieces must not cost more memory than the budget knows of. */
const PIECE_OVERHEAD_BYTES = 128;

/** How long what a refused caller still sends is read and thrown away: a reset would take the answer from it. */
const LINGER_MS = 2000;

/** Checks what the headers tell, before anything else is looked at. @throws DomainError */
export function checkBodyHeaders(request: IncomingMessage, maxBytes: number): void {
  decoderFor(request);
  if (declaredLength(request) > maxBytes) throw tooLarge(maxBytes);
}

/**
 * Reads the whole body, decompressed, as the pieces in which it came; the ticket holds its bytes.
 * @param maxBytes of the decompressed body.
 * @returns null if the caller left first.
 * @throws DomainError `request_too_large`, `overloaded` or `invalid_request`, without reading on.
 */
export async function readBody(request: IncomingMessage, ticket: Ticket, maxBytes: number): Promise<Buffer[] | null> {
  if (request.destroyed) return null;
  const makeDecoder = decoderFor(request);
  if (makeDecoder === null) {
    ticket.holdBytes(declaredLength(request));
    return await collect(request, request, new Collected(ticket, maxBytes));
  }
  const decoder = makeDecoder();
  // One that comes after all is said must not bring the process down.
  decoder.on("error", () => undefined);
  try {
    return await collect(request.pipe(decoder), request, new Collected(ticket, maxBytes));
  } finally {
    request.unpipe(decoder);
    decoder.destroy();
  }
}

/** The pieces so far, within their limits. */
class Collected {
  readonly pieces: Buffer[] = [];
  readonly #ticket: Ticket;
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(ticket: Ticket, maxBytes: number) {
    this.#ticket = ticket;
    this.#maxBytes = maxBytes;
  }

  /** @throws DomainError */
  add(piece: Buffer): void {
    this.pieces.push(piece);
    this.#bytes += piece.length;
    const held = this.#bytes + this.pieces.length * PIECE_OVERHEAD_BYTES;
    const most = this.#maxBytes;
    if (this.#bytes > most || held > 2 * most + PIECE_OVERHEAD_BYTES) throw tooLarge(most);
    this.#ticket.holdBytes(held);
  }
}

function collect(source: Readable, request: IncomingMessage, collected: Collected): Promise<Buffer[] | null> {
  return new Promise((resolve, reject) => {
    // The request lives as long as the answer: a listener left on it would keep the body in memory for all that time.
    const settle = (): void => {
      source.off("data", onData).off("end", onEnd).off("error", onFault);
      request.off("error", onGone).off("close", onGone);
    };
    const onFault = (error: Error): void => {
      settle();
      if (source === request) resolve(null);
      else reject(notDecodable(error));
    };
    const onData = (piece: Buffer): void => {
      try {
        collected.add(piece);
      } catch (error) {
        settle();
        reject(error);
      }
    };
    const onEnd = (): void => {
      settle();
      resolve(collected.pieces);
    };
    const onGone = (): void => {
      // A request that came whole closes as well, while its body is still decompressed.
      if (request.complete) return;
      settle();
      resolve(null);
    };
    source.on("data", onData).once("end", onEnd).once("error", onFault);
    request.once("error", onGone).once("close", onGone);
  });
}

/** After an early answer: lets a caller that is still sending read it, for a bounded time. */
export function discardRest(request: IncomingMessage): void {
  if (request.complete || request.destroyed) return;
  const timer = setTimeout(() => request.socket.destroy(), LINGER_MS);
  request.once("close", () => clearTimeout(timer));
  request.on("error", () => undefined);
  request.resume();
}

function declaredLength(request: IncomingMessage): number {
  return Number(request.headers["content-length"] ?? 0);
}

function tooLarge(maxBytes: number): DomainError {
  return new DomainError("request_too_large", `The body is larger than this server takes (${maxBytes} bytes).`);
}
