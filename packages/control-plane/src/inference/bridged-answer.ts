import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import type { DomainError } from "@fairlead/protocol/errors";
import { headersForCaller, isEventStream } from "./answer-headers.ts";
import type { HoldBytes } from "./bounded-bytes.ts";
import type { Conversion } from "./bridge/conversion.ts";
import { isObject } from "./bridge/parse.ts";
import { BridgedEvents } from "./bridged-events.ts";
import { CollectedAnswer, type CollectedOptions } from "./collected-answer.ts";
import { EVENT_STREAM_TYPE, type RelayedAnswer, type Send } from "./relayed-answer.ts";
import { failureIn } from "./upstream-words.ts";

/** A header has to stay short. */
const MOST_IGNORED = 32;

export interface BridgedAnswerOptions {
  readonly conversion: Conversion;
  /** The upstream's. */
  readonly headers: IncomingHttpHeaders;
  /** Whether the caller asked for events. */
  readonly stream: boolean;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Tells the caller of an error, in-band. */
  readonly tell: (error: DomainError) => void;
  readonly hold: HoldBytes;
}

/** An answer of the other dialect. An upstream that streams to nobody's wish, or does not where it should, is read all the same. */
export function bridgedAnswer(send: Send, options: BridgedAnswerOptions): RelayedAnswer {
  const { conversion, headers, stream, now, tell, hold } = options;
  const collected = (convert: CollectedOptions["convert"], telling: CollectedOptions["tell"]): RelayedAnswer =>
    new CollectedAnswer(send, { dialect: conversion.dialect, convert, tell: telling, hold });
  if (!stream) return collected((body) => whole(conversion, body), null);
  if (isEventStream(headers)) return new BridgedEvents(send, { conversion, now, hold });
  return collected((body) => streamed(conversion, body), tell);
}

/** What the caller gets of an upstream's headers where its body is made here: those of the body are of another one. */
export function headersOfMade(headers: IncomingHttpHeaders, isStream: boolean): OutgoingHttpHeaders {
  const { "content-length": _length, "content-encoding": _encoding, ...rest } = headersForCaller(headers, isStream);
  return { ...rest, "content-type": isStream ? EVENT_STREAM_TYPE : "application/json; charset=utf-8" };
}

/** The same of a refusal that is the caller's matter. */
export function headersOfRefusal(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return { ...headersOfMade(headers, false), "x-should-retry": "false" };
}

/** Tells the caller which parts of its request stay without effect (decisions/0016). */
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
  return stream.push(body) + stream.end();
}

/** Some upstreams tell of errors with status 200. */
function refuseError(body: unknown): void {
  const failure = isObject(body) ? failureIn(body["error"]) : null;
  if (failure !== null) throw failure.error;
}
