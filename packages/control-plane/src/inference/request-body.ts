import type { IncomingMessage } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";
import type { Ticket } from "./admission.ts";

/** What one Buffer costs beside its bytes: a body in tiny pieces must not cost more memory than the budget knows of. */
const PIECE_OVERHEAD_BYTES = 128;

/** How long what a refused caller still sends is read and thrown away: a reset would take the answer from it. */
const LINGER_MS = 2000;

/** Checks what the headers tell, before anything else is looked at. @throws DomainError */
export function checkBodyHeaders(request: IncomingMessage, maxBytes: number): void {
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw new DomainError("unsupported_media_type", "Send the body as plain JSON, without a content-encoding.", {
      param: "content-encoding",
    });
  }
  if (declaredLength(request) > maxBytes) throw tooLarge(maxBytes);
}

/**
 * Reads the whole body as the pieces in which it came; the ticket holds its bytes.
 * @returns null if the caller left first.
 * @throws DomainError `request_too_large` or `overloaded`, without reading on.
 */
export async function readBody(request: IncomingMessage, ticket: Ticket, maxBytes: number): Promise<Buffer[] | null> {
  if (request.destroyed) return null;
  ticket.holdBytes(declaredLength(request));
  return await new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let length = 0;
    // The request lives as long as the answer: a listener left on it would keep the body in memory for all that time.
    const settle = (): void => {
      request.off("data", onData).off("end", onEnd).off("error", onGone).off("close", onGone);
    };
    const onData = (piece: Buffer): void => {
      pieces.push(piece);
      length += piece.length;
      const held = length + pieces.length * PIECE_OVERHEAD_BYTES;
      try {
        if (length > maxBytes || held > 2 * maxBytes + PIECE_OVERHEAD_BYTES) throw tooLarge(maxBytes);
        ticket.holdBytes(held);
      } catch (error) {
        settle();
        reject(error);
      }
    };
    const onEnd = (): void => {
      settle();
      resolve(pieces);
    };
    const onGone = (): void => {
      settle();
      resolve(null);
    };
    request.on("data", onData).once("end", onEnd).once("error", onGone).once("close", onGone);
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
