import type { IncomingHttpHeaders } from "node:http";
import type { Duplex } from "node:stream";
import type { DomainError } from "@fairlead/protocol/errors";
import type { Prices } from "../billing/prices.ts";
import { headersForCaller, isEventStream, isJson } from "./answer-headers.ts";
import type { AnswerHead, AnswerSink, SinkListener } from "./answer-sink.ts";
import type { Asked, Attempt, Attempts } from "./attempts.ts";
import type { HoldBytes } from "./bounded-bytes.ts";
import { bridgedAnswer, headersOfMade, headersOfRefusal, ignoredHeader } from "./bridged-answer.ts";
import type { CallTimes } from "./call-times.ts";
import { CollectedAnswer } from "./collected-answer.ts";
import { EventAnswer, type EventAnswerOptions } from "./event-answer.ts";
import type { CallOutcome } from "./inference-call.ts";
import type { InferenceCounters } from "./inference-counters.ts";
import { LateAnswer } from "./late-answer.ts";
import type { LiveCall } from "./live-calls.ts";
import { EVENT_STREAM_TYPE, type RelayedAnswer } from "./relayed-answer.ts";
import type { AttemptFault } from "./retry-rules.ts";
import { failureEvents } from "./stream-failure.ts";
import type { UpstreamCall, UpstreamHandler } from "./upstream.ts";
import { faultOf, retryAfterSeconds, timedOut, verdictOn } from "./upstream-faults.ts";
import type { PlaceUse } from "./upstream-places.ts";
import { outcomeOf, refusalText } from "./upstream-refusal.ts";
import { WholeAnswer } from "./whole-answer.ts";

export interface RelayOptions extends EventAnswerOptions {
  /** Whether the caller asked for events. */
  readonly stream: boolean;
  readonly keepAliveMs: number;
  readonly times: CallTimes;
  /** Called once, when no attempt will be made any more: the request is not needed again. */
  readonly onCommitted: () => void;
  /** Asked before what was generated goes to the caller. @returns why it may not: the call has to end. */
  readonly cover: (outputTokens: number) => DomainError | null;
  /** For what has to be held of an answer to convert it. */
  readonly hold: HoldBytes;
  readonly counters: Pick<InferenceCounters, "relayedBytes" | "firstByte" | "retried">;
}

const KEEP_ALIVE = Buffer.from(": keep-alive\n\n");
const STREAM_HEADERS: IncomingHttpHeaders = { "content-type": EVENT_STREAM_TYPE };

/**
 * `waiting` for an answer, `relaying` it, `ending` (the caller has yet to take the last bytes), `closed`. Towards the caller an
 * answer is begun with its first bytes.
 */
type Phase = "waiting" | "relaying" | "ending" | "closed";

/**
 * Passes one upstream's answer to one caller as it comes: paused while the caller does not read, aborted when the caller
 * leaves, and never ended cleanly when the upstream broke off (design §8). As long as nothing was sent, a failure leads to the
 * next attempt.
 */
export class Relay implements UpstreamHandler, SinkListener, LiveCall {
  /** Resolves when nothing of the call is left. */
  readonly closed: Promise<void>;
  place = -1;
  readonly #sink: AnswerSink;
  readonly #options: RelayOptions;
  readonly #resolveClosed: () => void;
  #phase: Phase = "waiting";
  #outcome: CallOutcome = "client_left";
  #attempts: Attempts | null = null;
  /** Without the request: its body must not be kept for as long as the answer takes. */
  #asked: Asked | null = null;
  #call: UpstreamCall | undefined;
  #place: PlaceUse | undefined;
  #made = 0;
  #overheadMs: number | null = null;
  /** Until the next attempt. */
  #pause: NodeJS.Timeout | undefined;
  #answer: RelayedAnswer | null = null;
  #head: AnswerHead | null = null;
  #begunStatus: number | null = null;
  /** Why nothing more of the answer goes to the caller. */
  #stopped: DomainError | null = null;
  #paused = false;
  /** Set by traffic, taken back by `check`: reading the clock for every piece would cost more than it tells. */
  #active = false;
  /** The same of what was sent to the caller, who may hear nothing of what an upstream says. */
  #spoke = false;
  #quietSince: number;
  #spokeAt: number;

  constructor(sink: AnswerSink, options: RelayOptions) {
    this.#sink = sink;
    this.#options = options;
    this.#quietSince = options.times.begunAt;
    this.#spokeAt = options.times.begunAt;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#resolveClosed = resolve;
    sink.listen(this);
  }

  /** How it ended; to be asked once it is closed. */
  get outcome(): CallOutcome {
    return this.#outcome;
  }

  /** Of the answer that was begun. */
  get status(): number | null {
    return this.#begunStatus;
  }

  get answer(): RelayedAnswer | null {
    return this.#answer;
  }

  get upstreamId(): string | null {
    return this.#asked?.upstreamId ?? null;
  }

  /** Of the place that answered, or was tried last. */
  get prices(): Prices | null {
    return this.#asked?.prices ?? null;
  }

  /** How many upstreams were asked, or the same one how often. */
  get attempts(): number {
    return this.#made;
  }

  /** Until the answer's head; null where none was begun. */
  get overheadMs(): number | null {
    return this.#overheadMs;
  }

  get connection(): Duplex | null {
    return this.#sink.connection;
  }

  /** @param attempts those that are left. */
  start(first: Attempt, attempts: Attempts): void {
    // The caller may be gone by now.
    if (this.#phase === "closed") return;
    this.#attempts = attempts;
    this.#dispatch(first);
  }

  onHeaders(status: number, headers: IncomingHttpHeaders): void {
    if (this.#phase !== "waiting") return;
    this.#active = true;
    const { times, counters } = this.#options;
    counters.firstByte.observe(times.answered() / 1000);
    this.#judgePlace(status, headers);
    const { fault, passable } = verdictOn(status, headers);
    if (fault !== null && this.#tryAgain(fault)) return;
    // Whether another attempt follows is judged by now.
    if (fault !== null) this.#commit();
    if (fault !== null && !passable) this.fail(fault.error);
    else this.#accept(status, headers);
  }

  onData(chunk: Buffer): boolean {
    if (this.#phase !== "relaying" || this.#answer === null) return true;
    this.#active = true;
    this.#options.counters.relayedBytes += chunk.length;
    const fault = this.#answer.push(chunk);
    if (this.#stopped !== null) {
      this.fail(this.#stopped);
    } else if (fault !== null) {
      this.#call?.abort();
      this.#failAttempt({ kind: "failed", error: fault });
    }
    return !this.#paused;
  }

  onEnd(): void {
    if (this.#phase !== "relaying" || this.#answer === null) return;
    this.#active = true;
    const fault = this.#answer.end();
    if (this.#stopped !== null) this.fail(this.#stopped);
    else if (fault === null) this.#complete();
    else this.#failAttempt({ kind: "failed", error: fault });
  }

  onError(error: DomainError): void {
    if (this.#phase !== "waiting" && this.#phase !== "relaying") return;
    if (this.#phase === "waiting") this.#place?.failed();
    if (this.#answer?.finished) this.#complete();
    else this.#failAttempt(faultOf(error));
  }

  /** Ends the call from our side, upstream included, as the caller's dialect says. */
  fail(error: DomainError): void {
    if (this.#phase !== "waiting" && this.#phase !== "relaying") return;
    this.#call?.abort();
    this.#endAsFailed(error);
  }

  onDrain(): void {
    this.#active = true;
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

  /** Looks at the time-outs; called from time to time for every open call. */
  check(now: number): void {
    const timeouts = this.#asked?.timeouts;
    if (timeouts === undefined) return;
    if (this.#active) {
      this.#active = false;
      this.#quietSince = now;
    }
    if (this.#spoke) {
      this.#spoke = false;
      this.#spokeAt = now;
    }
    const quiet = now - this.#quietSince;
    const stalled = this.#paused || this.#phase === "ending";
    if (stalled && quiet >= timeouts.idleMs) this.#sink.break();
    else if (this.#phase === "ending") return;
    else if (now - this.#options.times.begunAt >= timeouts.totalMs) this.fail(timedOut("took too long in all"));
    else if (stalled) return;
    else if (this.#phase === "waiting" && quiet >= timeouts.firstByteMs) this.#giveUpWaiting();
    else if (this.#phase === "relaying" && quiet >= timeouts.idleMs) this.fail(timedOut("fell silent"));
    else if (now - this.#spokeAt >= this.#options.keepAliveMs) this.#keepAlive(now);
  }

  /** What the answer's head says of the upstream itself. */
  #judgePlace(status: number, headers: IncomingHttpHeaders): void {
    if (status >= 500) this.#place?.failed();
    else this.#place?.answered();
    const seconds = status === 429 || status === 503 ? retryAfterSeconds(headers) : undefined;
    if (seconds !== undefined) this.#place?.rest(seconds * 1000);
  }

  #giveUpWaiting(): void {
    this.#place?.failed();
    this.fail(timedOut("did not answer"));
  }

  /** @returns whether another attempt is made of it; never once anything was sent, be it a comment. */
  #tryAgain(fault: AttemptFault): boolean {
    const next = this.#begunStatus === null ? (this.#attempts?.after(fault) ?? null) : null;
    if (next === null) return false;
    this.#call?.abort();
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
    this.#pause = setTimeout(() => {
      // It would keep the attempt, and with it the call's body.
      this.#pause = undefined;
      if (this.#phase !== "waiting") return;
      if (this.#begunStatus === null) this.#dispatch(next.attempt);
      else this.#endAsFailed(fault.error);
    }, next.waitMs);
    return true;
  }

  #dispatch(attempt: Attempt): void {
    const { asked, transport, request } = attempt;
    this.#asked = asked;
    this.#answer = null;
    this.#head = null;
    this.#phase = "waiting";
    this.#active = true;
    this.#made = this.#attempts?.made ?? 1;
    this.#place?.end();
    this.#place = attempt.begin();
    this.#options.times.asked();
    this.#call = transport.dispatch(request, this);
  }

  #accept(status: number, headers: IncomingHttpHeaders): void {
    this.#phase = "relaying";
    const { times, stream } = this.#options;
    const conversion = this.#asked?.conversion ?? null;
    const isStream = status < 300 && (conversion === null ? isEventStream(headers) : stream);
    const headersOf = conversion === null ? headersForCaller : headersOfMade;
    this.#answer = this.#answerTo(status, headers, isStream);
    this.#head = { status, headers: status < 400 ? headersOf(headers, isStream) : headersOfRefusal(headers) };
    // Until there is something to send, the wait is still the upstream's.
    times.asked();
  }

  #answerTo(status: number, headers: IncomingHttpHeaders, isStream: boolean): RelayedAnswer {
    const { dialect, stream, now } = this.#options;
    const conversion = this.#asked?.conversion ?? null;
    const tell = (error: DomainError): void => this.#tell(error);
    if (this.#begunStatus !== null && !isStream) return new LateAnswer({ status, headers }, tell);
    const hold = this.#hold;
    if (status >= 400) {
      const convert = (body: unknown): string => refusalText(body, { status, headers }, this.#options);
      return new CollectedAnswer(this.#send, { dialect: null, convert, tell: null, hold });
    }
    if (conversion !== null) return bridgedAnswer(this.#send, { conversion, headers, stream, now, tell, hold });
    if (isStream) return new EventAnswer(this.#send, this.#options);
    return new WholeAnswer(this.#send, { dialect, json: isJson(headers) });
  }

  readonly #send = (bytes: Buffer): boolean => {
    if (this.#phase === "relaying" && !this.#isPaid()) return false;
    this.#spoke = true;
    if (this.#begunStatus === null && this.#head !== null) this.#begin(this.#head);
    if (!this.#sink.write(bytes)) this.#paused = true;
    return true;
  };

  /** Another place would have to be held as well: the call ends with it. */
  readonly #hold: HoldBytes = (bytes) => {
    this.#stopped ??= this.#options.hold(bytes);
    return this.#stopped;
  };

  /** Whether all that was generated until now is paid for. A refusal is none of an upstream's work. */
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
    this.#sink.begin({ status, headers: Object.assign(headers, this.#ownHeaders()) });
    this.#commit();
  }

  #ownHeaders(): Record<string, string> {
    this.#overheadMs = this.#options.times.overheadMs();
    return {
      "x-fairlead-upstream": this.upstreamId ?? "",
      "x-fairlead-attempts": String(this.#made),
      "x-fairlead-overhead-ms": this.#overheadMs.toFixed(2),
      ...ignoredHeader(this.#asked?.conversion ?? null),
    };
  }

  #commit(): void {
    if (this.#attempts === null) return;
    this.#attempts = null;
    this.#options.onCommitted();
  }

  #complete(): void {
    if (this.#begunStatus === null && this.#head !== null) this.#begin(this.#head);
    this.#phase = "ending";
    if ((this.#begunStatus ?? 0) >= 400) this.#outcome = "rejected";
    else this.#outcome = this.#answer?.failed ? "upstream_failed" : "ok";
    this.#sink.end();
  }

  /** The upstream is done with; the call need not be. */
  #failAttempt(fault: AttemptFault): void {
    if (!this.#tryAgain(fault)) this.#endAsFailed(fault.error);
  }

  #endAsFailed(error: DomainError): void {
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
      // In JSON a broken connection is the only sign that cannot be taken for an end.
      this.#sink.break();
      return;
    }
    this.#sink.end();
  }

  /** In-band, in a stream of which nothing but comments was sent. */
  #tell(error: DomainError): void {
    const nothing = { begun: false, errorTold: false, sequence: -1, response: null };
    this.#sink.write(Buffer.from(failureEvents({ ...this.#options, ...nothing }, error)));
  }

  #keepAlive(now: number): void {
    if (!this.#options.stream || this.#answer?.canComment === false) return;
    if (this.#begunStatus === null) this.#begin({ status: 200, headers: headersForCaller(STREAM_HEADERS, true) });
    this.#spokeAt = now;
    if (!this.#sink.write(KEEP_ALIVE)) this.#paused = true;
  }
}
