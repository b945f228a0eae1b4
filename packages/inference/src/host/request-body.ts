import type { IncomingMessage } from "node:http";
import { type BodyLimits, collectBody, declaredLength, tooLarge } from "@fairlead/hosting/requests/collect-body";
import { decoderFor, notDecodable } from "../relay/content-decoder.ts";

/** How long to discard what a rejected client still sends: a reset could destroy the response. */
const LINGER_MS = 2000;

/** Checks the headers first. @throws DomainError */
export function checkBodyHeaders(request: IncomingMessage, maxBytes: number): void {
  decoderFor(request);
  if (declaredLength(request) > maxBytes) throw tooLarge(maxBytes);
}

/**
 * Reads and decompresses the whole body, in the chunks received; the ticket reserves its bytes.
 * @returns null if the client disconnected first.
 * @throws DomainError `request_too_large`, `overloaded`, `request_timeout` or `invalid_request`, without reading further.
 */
export async function readBody(request: IncomingMessage, limits: BodyLimits): Promise<Buffer[] | null> {
  if (request.destroyed) return null;
  const makeDecoder = decoderFor(request);
  if (makeDecoder === null) return await collectBody({ source: request, request, explain: null }, limits);
  const decoder = makeDecoder();
  // A late error must not crash the process.
  decoder.on("error", () => undefined);
  try {
    return await collectBody({ source: request.pipe(decoder), request, explain: notDecodable }, limits);
  } finally {
    request.unpipe(decoder);
    decoder.destroy();
  }
}

/** After an early response: lets a client that is still sending read it, for a limited time. */
export function discardRest(request: IncomingMessage): void {
  if (request.complete || request.destroyed) return;
  const timer = setTimeout(() => request.socket.destroy(), LINGER_MS);
  request.once("close", () => clearTimeout(timer));
  request.on("error", () => undefined);
  request.resume();
}
