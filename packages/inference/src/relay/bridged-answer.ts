import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { CollectedAnswer, type CollectedOptions } from "@fairlead/dialects/calls/collected-answer";
import { EVENT_STREAM_TYPE, noResponse, type RelayedAnswer, type Send } from "@fairlead/dialects/calls/relayed-answer";
import { failureIn } from "@fairlead/dialects/calls/upstream-failure";
import type { Conversion } from "@fairlead/dialects/convert/conversion";
import { BridgedEvents } from "@fairlead/dialects/events/bridged-events";
import { framesOf } from "@fairlead/dialects/events/sse";
import type { HoldBytes } from "@fairlead/dialects/json/bounded-bytes";
import { isObject } from "@fairlead/dialects/json/parse";
import type { DomainError } from "@fairlead/protocol/errors";
import { bodyFormOf, headersForCaller } from "./answer-headers.ts";

/** Keeps the header short. */
const MOST_IGNORED = 32;

export interface BridgedAnswerOptions {
  readonly conversion: Conversion;
  /** The upstream's. */
  readonly headers: IncomingHttpHeaders;
  /** Whether the caller requested a stream. */
  readonly stream: boolean;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Sends an error in-band. */
  readonly tell: (error: DomainError) => void;
  readonly hold: HoldBytes;
  readonly readsEvents: boolean;
}

/** Converts a response of the other dialect, streaming or not, regardless of what was requested. */
export function bridgedAnswer(send: Send, options: BridgedAnswerOptions): RelayedAnswer {
  const { conversion, headers, stream, now, tell, hold, readsEvents } = options;
  const collected = (convert: CollectedOptions["convert"], telling: CollectedOptions["tell"]): RelayedAnswer =>
    new CollectedAnswer(send, { dialect: conversion.dialect, convert, tell: telling, hold, readsEvents });
  if (!stream) return collected((body) => whole(conversion, body), null);
  if (bodyFormOf(headers) !== "json") return new BridgedEvents(send, { conversion, now, hold, readsEvents });
  return collected((body) => streamed(conversion, body), tell);
}

/** The upstream's headers without those of the body, which is replaced. */
export function headersForConverted(headers: IncomingHttpHeaders, isStream: boolean): OutgoingHttpHeaders {
  const { "content-length": _length, "content-encoding": _encoding, ...rest } = headersForCaller(headers, isStream);
  return { ...rest, "content-type": isStream ? EVENT_STREAM_TYPE : "application/json; charset=utf-8" };
}

/** The same for a rejection caused by the caller. */
export function headersOfRefusal(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return { ...headersForConverted(headers, false), "x-should-retry": "false" };
}

/** Lists the ignored parts of the request (decisions/0016). */
export function ignoredHeader(conversion: Conversion | null): Record<string, string> {
  const [first, ...more] = conversion?.ignored ?? [];
  if (first === undefined) return {};
  const listed = [first, ...more].slice(0, MOST_IGNORED).join(", ");
  const rest = more.length + 1 - MOST_IGNORED;
  return { "x-fairlead-ignored": rest > 0 ? `${listed}, and ${rest} more` : listed };
}

function whole(conversion: Conversion, body: unknown): string {
  refuseError(body);
  return conversion.whole(body);
}

function streamed(conversion: Conversion, body: unknown): string {
  refuseError(body);
  const stream = conversion.stream();
  return framesOf([...stream.push(body), ...stream.end()]);
}

/** Some upstreams send errors with status 200. */
function refuseError(body: unknown): void {
  if (!isObject(body)) throw noResponse("returned a body that is not a JSON object");
  const failure = failureIn(body["error"]);
  if (failure !== null) throw failure.error;
}
