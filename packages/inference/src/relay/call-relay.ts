import type { IncomingHttpHeaders } from "node:http";
import type { Duplex } from "node:stream";
import { noResponse, type RelayedAnswer, type Send } from "@fairlead/dialects/calls/relayed-answer";
import { eventsFor } from "@fairlead/dialects/events/answer-event";
import type { HoldBytes } from "@fairlead/dialects/json/bounded-bytes";
import type { DomainError } from "@fairlead/protocol/errors";
import type { AnswerHead, AnswerSink, SinkListener } from "../calls/answer-sink.ts";
import type { Attempt, AttemptRequest, Attempts, NextAttempt } from "../calls/attempts.ts";
import { CallSilence } from "../calls/call-silence.ts";
import type { CallOutcome } from "../calls/inference-call.ts";
import type { LiveCall } from "../host/live-calls.ts";
import type { Prices } from "../ports/prices.ts";
import type { AttemptFault } from "../routing/retry-rules.ts";
import {
  classifyFailure,
  faultInAnswer,
  faultOf,
  judgePlace,
  nameUpstream,
  timedOut,
} from "../routing/upstream-faults.ts";
import type { UpstreamLease } from "../routing/upstream-leases.ts";
import { isCallersMistake, outcomeOf } from "../routing/upstream-refusal.ts";
import type { UpstreamCall, UpstreamHandler } from "../upstreams/upstream.ts";
import { asPlain, headersOfCall, isRead, type PlanOptions, planAnswer, type UpstreamHead } from "./answer-plan.ts";
import { codingOf, makeDecoder } from "./content-decoder.ts";
import { failureInBand, KEEP_ALIVE, keepAliveHead, type RelayOptions, retryAfterOf } from "./relay-options.ts";
import { type DecodedHandler, ResponseDecoder } from "./response-decoder.ts";

/** `ending`: the upstream is done, the client has not read everything yet. */
type Phase = "waiting" | "relaying" | "ending" | "closed";

/**
 * Streams one upstream response to one client with backpressure. A broken upstream never ends the client's response cleanly. Failures
 * before the first byte are retried.
 */
export class CallRelay implements UpstreamHandler, DecodedHandler, SinkListener, LiveCall {
  /** Resolves when nothing of the call is left. */
  readonly closed: Promise<void>;
  place = -1;
  readonly #sink: AnswerSink;
  readonly #options: RelayOptions;
  readonly #resolveClosed: () => void;
  #phase: Phase = "waiting";
  #outcome: CallOutcome = "client_left";
  #attempts: Attempts | null = null;
  /** Without the request: its body must be released early. */
  #asked: AttemptRequest | null = null;
  #call: UpstreamCall | undefined;
  #decoder: ResponseDecoder | null = null;
  #place: UpstreamLease | undefined;
  #made = 0;
  #overheadMs: number | null = null;
  /** Until the next attempt. */
  #pause: NodeJS.Timeout | undefined;
  #answer: RelayedAnswer | null = null;
  #head: AnswerHead | null = null;
  #begunStatus: number | null = null;
  /** Why nothing more of the response is sent to the client. */
  #stopped: DomainError | null = null;
  #paused = false;
  readonly #silence: CallSilence;

  constructor(sink: AnswerSink, options: RelayOptions) {
    this.#sink = sink;
    this.#options = options;
    this.#silence = new CallSilence(options.times.begunAt);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#resolveClosed = resolve;
    sink.listen(this);
  }

  /** The outcome; read it after the call is closed. */
  get outcome(): CallOutcome {
    return this.#outcome;
  }

  /** The status sent to the client. */
  get status(): number | null {
    return this.#begunStatus;
  }

  get answer(): RelayedAnswer | null {
    return this.#answer;
  }

  get upstreamId(): string | null {
    return this.#asked?.upstreamId ?? null;
  }

  /** The upstream that responded, or was tried last. */
  get prices(): Prices | null {
    return this.#asked?.prices ?? null;
  }

  /** Number of attempts. */
  get attempts(): number {
    return this.#made;
  }

  /** Time until the response headers; null if there were none. */
  get overheadMs(): number | null {
    return this.#overheadMs;
  }

  get connection(): Duplex | null {
    return this.#sink.connection;
  }

  /** @param attempts the remaining ones. */
  start({ attempt, waitMs }: NextAttempt, attempts: Attempts): void {
    // The client may have disconnected.
    if (this.#phase === "closed") return;
    this.#attempts = attempts;
    this.#asked = attempt.asked;
    this.#options.times.asked();
    if (waitMs === 0) this.#dispatch(attempt);
    else this.#after(waitMs, () => this.#dispatch(attempt));
  }

  onHeaders(status: number, headers: IncomingHttpHeaders): void {
    if (this.#phase !== "waiting") return;
    this.#silence.active = true;
    const { times, counters, stream } = this.#options;
    counters.firstByte.observe(times.answered() / 1000);
    const head = { status, headers, retryAfterSeconds: retryAfterOf(status, headers, this.#options) };
    const verdict = classifyFailure(head, stream);
    const { fault, passable } = verdict;
    if (this.#place !== undefined) judgePlace(this.#place, head, verdict);
    if (fault !== null && this.#tryAgain(fault)) return;
    // Whether to retry has been decided.
    if (fault !== null) this.#commit();
    if (fault !== null && !passable) this.fail(fault.error);
    else this.#accept(head);
  }

  onData(chunk: Buffer): boolean {
    if (this.#decoder === null) return this.onDecoded(chunk);
    this.#silence.active = true;
    return this.#decoder.write(chunk);
  }

  onDecoded(chunk: Buffer): boolean {
    if (this.#phase !== "relaying" || this.#answer === null) return true;
    this.#silence.active = true;
    this.#options.counters.relayedBytes += chunk.length;
    const fault = this.#answer.push(chunk);
    if (this.#stopped !== null) this.fail(this.#stopped);
    else if (fault !== null) this.#abandon(faultInAnswer(fault));
    return !this.#paused;
  }

  onEnd(): void {
    if (this.#decoder === null) this.onDecodedEnd();
    else this.#decoder.end();
  }

  onDecodedEnd(): void {
    if (this.#phase !== "relaying" || this.#answer === null) return;
    this.#silence.active = true;
    const fault = this.#answer.end();
    if (this.#stopped !== null) this.fail(this.#stopped);
    else if (fault === null) this.#complete();
    else this.#failAttempt(faultInAnswer(fault));
  }

  onUndecodable(error: DomainError): void {
    if (this.#phase === "relaying") this.#abandon(faultInAnswer(error));
  }

  onError(error: DomainError): void {
    this.#decoder?.drop();
    if (this.#phase !== "waiting" && this.#phase !== "relaying") return;
    if (this.#phase === "waiting") this.#place?.failed();
    if (this.#answer?.finished) this.#complete();
    else this.#failAttempt(faultOf(error));
  }

  /** Ends the call from our side, including the upstream, in the client's dialect. */
  fail(error: DomainError): void {
    if (this.#phase !== "waiting" && this.#phase !== "relaying") return;
    this.#call?.abort();
    this.#endAsFailed(error);
  }

  onDrain(): void {
    this.#silence.active = true;
    if (!this.#paused) return;
    this.#paused = false;
    if (this.#phase === "relaying") this.#call?.resume();
  }

  onClosed(whole: boolean): void {
    if (this.#phase === "waiting" || this.#phase === "relaying") this.#call?.abort();
    else if (this.#outcome === "ok" && !whole) this.#outcome = "client_left";
    this.#phase = "closed";
    clearTimeout(this.#pause);
    this.#place?.end();
    this.#commit();
    this.#resolveClosed();
  }

  /** Checks the timeouts; called periodically for every open call. */
  check(now: number): void {
    const timeouts = this.#asked?.timeouts;
    if (timeouts === undefined) return;
    const { quietMs: quiet, unspokenMs } = this.#silence.look(now);
    const stalled = this.#paused || this.#phase === "ending";
    if (stalled && quiet >= timeouts.idleMs) this.#sink.break();
    else if (this.#phase === "ending") return;
    else if (now - this.#options.times.begunAt >= timeouts.totalMs)
      this.fail(timedOut("did not finish", timeouts.totalMs));
    else if (stalled) return;
    else if (this.#phase === "waiting" && quiet >= timeouts.firstByteMs) this.#giveUpWaiting(timeouts.firstByteMs);
    else if (this.#phase === "relaying" && quiet >= timeouts.idleMs)
      this.fail(timedOut("sent nothing", timeouts.idleMs));
    else if (unspokenMs >= this.#options.keepAliveMs) this.#keepAlive(now);
  }

  #giveUpWaiting(firstByteMs: number): void {
    this.#place?.failed();
    this.fail(timedOut("did not respond", firstByteMs));
  }

  /** @returns whether the call is retried; never after anything was sent, including a comment. */
  #tryAgain(fault: AttemptFault): boolean {
    const next = this.#begunStatus === null ? (this.#attempts?.after(fault) ?? null) : null;
    if (next === null) return false;
    this.#call?.abort();
    this.#place?.failed();
    this.#options.onFailure(this.upstreamId, fault.error);
    this.#options.counters.retried(fault.kind);
    if (next.waitMs === 0) {
      this.#dispatch(next.attempt);
      return true;
    }
    this.#place?.end();
    this.#call = undefined;
    this.#answer = null;
    this.#phase = "waiting";
    this.#options.times.asked();
    this.#after(next.waitMs, () => {
      if (this.#begunStatus === null) this.#dispatch(next.attempt);
      else this.#endAsFailed(fault.error);
    });
    return true;
  }

  #after(waitMs: number, step: () => void): void {
    this.#pause = setTimeout(() => {
      // It would keep the attempt, and with it the call's body.
      this.#pause = undefined;
      if (this.#phase === "waiting") step();
    }, waitMs);
  }

  #dispatch(attempt: Attempt): void {
    const { asked, transport, request } = attempt;
    this.#asked = asked;
    this.#answer = null;
    this.#head = null;
    this.#decoder = null;
    this.#phase = "waiting";
    this.#silence.active = true;
    this.#made = this.#attempts?.made ?? 1;
    this.#place?.end();
    this.#place = attempt.begin();
    this.#options.times.asked();
    this.#call = transport.dispatch(request, this);
  }

  #accept(head: UpstreamHead): void {
    this.#phase = "relaying";
    const options: PlanOptions = {
      call: this.#options,
      conversion: this.#asked?.conversion ?? null,
      isLate: this.#begunStatus !== null,
      tell: this.#tell,
      hold: this.#hold,
    };
    const coding = codingOf(head.headers);
    const isDecoded = coding !== null && isRead(head, options);
    if (isDecoded && !this.#decode(coding)) return;
    const { answer, head: planned } = planAnswer(this.#send, isDecoded ? asPlain(head) : head, options);
    this.#answer = answer;
    this.#head = planned;
    // Until there is something to send, the wait still counts as the upstream's.
    this.#options.times.asked();
  }

  /** @returns whether the coding is supported; otherwise the attempt has failed. */
  #decode(coding: string): boolean {
    const decoder = makeDecoder(coding);
    if (decoder === null || this.#call === undefined) {
      this.#abandon(faultInAnswer(noResponse("returned a content-encoding that is not supported")));
      return false;
    }
    this.#decoder = new ResponseDecoder(this.#call, decoder, this);
    this.#call = this.#decoder;
    return true;
  }

  readonly #send: Send = (bytes, events) => {
    if (this.#phase === "relaying" && !this.#isPaid()) return false;
    this.#silence.spoke = true;
    if (this.#begunStatus === null && this.#head !== null) this.#begin(this.#head);
    if (!this.#sink.write(bytes, events)) this.#paused = true;
    return true;
  };

  /** Memory for a buffered response. A retry would need it as well, so a rejection ends the call. */
  readonly #hold: HoldBytes = (bytes) => {
    this.#stopped ??= this.#options.hold(bytes);
    return this.#stopped;
  };

  /** Whether everything generated so far is paid for. A rejection costs nothing. */
  #isPaid(): boolean {
    if (this.#stopped !== null) return false;
    if (this.#answer !== null && (this.#head?.status ?? 0) < 400) {
      this.#stopped = this.#options.cover(this.#answer.outputTokens);
    }
    return this.#stopped === null;
  }

  #begin({ status, headers }: AnswerHead): void {
    this.#begunStatus = status;
    this.#options.times.answered();
    this.#sink.begin({ status, headers: Object.assign(headers, this.#ownHeaders()), model: this.#asked?.model });
    this.#commit();
  }

  #ownHeaders(): Record<string, string> {
    const overheadMs = this.#options.times.overheadMs();
    this.#overheadMs = overheadMs;
    return headersOfCall(this.#asked, this.#made, overheadMs);
  }

  #commit(): void {
    if (this.#attempts === null) return;
    this.#attempts = null;
    this.#options.onCommitted();
  }

  #complete(): void {
    this.#place?.answered();
    if (this.#begunStatus === null && this.#head !== null) this.#begin(this.#head);
    this.#phase = "ending";
    if ((this.#begunStatus ?? 0) >= 400) this.#outcome = "rejected";
    else this.#outcome = this.#answer?.failed ? "upstream_failed" : "ok";
    this.#sink.end();
  }

  #abandon(fault: AttemptFault): void {
    this.#call?.abort();
    this.#failAttempt(fault);
  }

  /** The upstream is done; the call may not be. */
  #failAttempt(fault: AttemptFault): void {
    if (this.#tryAgain(fault)) return;
    if (!isCallersMistake(fault.error)) this.#place?.failed();
    this.#endAsFailed(fault.error);
  }

  #endAsFailed(cause: DomainError): void {
    this.#options.onFailure(this.upstreamId, cause);
    const error = nameUpstream(cause, this.upstreamId);
    this.#phase = "ending";
    this.#outcome = outcomeOf(error);
    this.#commit();
    if (this.#begunStatus === null) {
      this.#options.times.answered();
      this.#sink.refuse(error, this.#ownHeaders());
      return;
    }
    if (this.#answer === null) this.#tell(error);
    else if (!this.#answer.fail(error)) {
      // For JSON, a broken connection is the only unambiguous sign of failure.
      this.#sink.break();
      return;
    }
    this.#sink.end();
  }

  /** In-band, in a stream that has sent only comments. */
  readonly #tell = (error: DomainError): void => {
    const failure = failureInBand(this.#options, error);
    this.#sink.write(failure, eventsFor(this.#options, failure));
  };

  #keepAlive(now: number): void {
    if (!this.#options.stream || this.#answer?.canComment === false) return;
    if (this.#begunStatus === null) this.#begin(keepAliveHead());
    this.#silence.told(now);
    if (!this.#sink.write(KEEP_ALIVE, eventsFor(this.#options, KEEP_ALIVE))) this.#paused = true;
  }
}
