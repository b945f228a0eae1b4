import type { IncomingHttpHeaders } from "node:http";
import type { Duplex } from "node:stream";
import { DomainError } from "@fairlead/protocol/errors";
import { errorAnswer } from "../http/error-response.ts";
import { type Exchange, sendError } from "./answer.ts";
import { AnswerBody } from "./answer-body.ts";
import { headersForCaller, isEventStream, isJson } from "./answer-headers.ts";
import { EventBoundary } from "./event-boundary.ts";
import type { CallOutcome, InferenceCounters } from "./inference-counters.ts";
import type { UpstreamCall, UpstreamHandler, UpstreamRequest, UpstreamTransport } from "./upstream.ts";

export interface RelayLimits {
  readonly firstByteMs: number;
  readonly idleMs: number;
  readonly totalMs: number;
  readonly keepAliveMs: number;
}

export interface RelayOptions {
  readonly limits: RelayLimits;
  /** Monotonic milliseconds, as for `check`. */
  readonly now: number;
  /** Called once, when the upstream begins to answer: the request will not be needed again. */
  readonly onAnswered: () => void;
  readonly counters: Pick<InferenceCounters, "relayedBytes">;
}

const KEEP_ALIVE = Buffer.from(": keep-alive\n\n");

/** `waiting` for headers, `relaying`, `ending` (the caller has yet to take the last bytes), `closed`. */
type Phase = "waiting" | "relaying" | "ending" | "closed";

/**
 * Passes one upstream answer to one caller as it comes: one write per piece, paused while the caller does not read,
 * aborted when the caller leaves, and never ended cleanly when the upstream broke off (design §8).
 */
export class Relay implements UpstreamHandler {
  /** Resolves when nothing of the call is left. */
  readonly closed: Promise<void>;
  readonly #exchange: Exchange;
  readonly #limits: RelayLimits;
  readonly #onAnswered: () => void;
  readonly #counters: RelayOptions["counters"];
  readonly #startedAt: number;
  readonly #boundary = new EventBoundary();
  #phase: Phase = "waiting";
  #outcome: CallOutcome = "client_left";
  #call: UpstreamCall | undefined;
  /** From the answer's head on. */
  #body: AnswerBody | undefined;
  #eventStream = false;
  #rejected = false;
  #paused = false;
  /** Set by traffic, taken back by `check`: reading the clock for every piece would cost more than it tells. */
  #active = false;
  #quietSince: number;
  #spokeAt: number;

  constructor(exchange: Exchange, options: RelayOptions) {
    this.#exchange = exchange;
    this.#limits = options.limits;
    this.#onAnswered = options.onAnswered;
    this.#counters = options.counters;
    this.#startedAt = options.now;
    this.#quietSince = options.now;
    this.#spokeAt = options.now;
    const { response } = exchange;
    response.on("drain", () => this.#onDrain());
    response.on("error", () => undefined);
    this.closed = new Promise((resolve) => {
      response.once("close", () => {
        this.#onClose();
        resolve();
      });
    });
  }

  /** How it ended; to be asked once it is closed. */
  get outcome(): CallOutcome {
    return this.#outcome;
  }

  get socket(): Duplex | null {
    return this.#exchange.response.socket;
  }

  start(upstream: UpstreamTransport, request: UpstreamRequest): void {
    this.#call = upstream.dispatch(request, this);
  }

  onHeaders(status: number, headers: IncomingHttpHeaders): void {
    if (this.#phase !== "waiting") return;
    this.#active = true;
    this.#onAnswered();
    const fault = faultOf(status, headers);
    if (fault !== null) {
      this.fail(fault);
      return;
    }
    this.#phase = "relaying";
    this.#rejected = status >= 400;
    this.#eventStream = isEventStream(headers);
    const { response, requestId } = this.#exchange;
    const relayed = headersForCaller(headers, this.#eventStream);
    relayed["x-request-id"] = requestId;
    response.writeHead(status, relayed);
    this.#body = new AnswerBody(response);
    if (this.#eventStream) response.flushHeaders();
  }

  onData(chunk: Buffer): boolean {
    if (this.#phase !== "relaying") return true;
    this.#active = true;
    this.#counters.relayedBytes += chunk.length;
    if (this.#eventStream) this.#boundary.push(chunk);
    if (this.#body?.write(chunk) !== false) return true;
    this.#paused = true;
    return false;
  }

  onEnd(): void {
    if (this.#phase !== "relaying") return;
    this.#active = true;
    this.#phase = "ending";
    this.#outcome = this.#rejected ? "rejected" : "ok";
    this.#body?.end();
  }

  onError(error: DomainError): void {
    this.#endAsFailed(error);
  }

  /** Ends the call from our side, upstream included, as the caller's dialect says. */
  fail(error: DomainError): void {
    if (this.#phase === "waiting" || this.#phase === "relaying") this.#call?.abort();
    this.#endAsFailed(error);
  }

  /** Looks at the time-outs; called from time to time for every open call. */
  check(now: number): void {
    if (this.#active) {
      this.#active = false;
      this.#quietSince = now;
      this.#spokeAt = now;
    }
    const quiet = now - this.#quietSince;
    const stalled = this.#paused || this.#phase === "ending";
    if (stalled && quiet >= this.#limits.idleMs) this.#exchange.response.destroy();
    else if (this.#phase === "ending") return;
    else if (now - this.#startedAt >= this.#limits.totalMs) this.fail(timedOut("took too long in all"));
    else if (stalled) return;
    else if (this.#phase === "waiting" && quiet >= this.#limits.firstByteMs) this.fail(timedOut("did not answer"));
    else if (this.#phase === "relaying" && quiet >= this.#limits.idleMs) this.fail(timedOut("fell silent"));
    else if (now - this.#spokeAt >= this.#limits.keepAliveMs) this.#keepAlive(now);
  }

  #keepAlive(now: number): void {
    if (this.#phase !== "relaying" || !this.#eventStream || !this.#boundary.reached) return;
    this.#spokeAt = now;
    this.#body?.write(KEEP_ALIVE);
  }

  #endAsFailed(error: DomainError): void {
    if (this.#phase !== "waiting" && this.#phase !== "relaying") return;
    this.#phase = "ending";
    this.#outcome = error.code;
    const { response, requestId } = this.#exchange;
    if (!response.headersSent) {
      sendError(this.#exchange, error);
    } else if (this.#eventStream) {
      // An event glued to a half line would be lost with it.
      const gap = this.#boundary.reached ? "" : "\n\n";
      this.#body?.write(Buffer.from(`${gap}data: ${errorAnswer(error, requestId).body}\n\n`));
      this.#body?.end();
    } else {
      // There is no way to tell of it in JSON: a broken connection is the only sign that cannot be taken for an end.
      response.destroy();
    }
  }

  #onDrain(): void {
    this.#active = true;
    if (!this.#paused) return;
    this.#paused = false;
    if (this.#phase === "relaying") this.#call?.resume();
  }

  #onClose(): void {
    if (this.#phase === "waiting" || this.#phase === "relaying") this.#call?.abort();
    else if (this.#outcome === "ok" && !this.#exchange.response.writableFinished) this.#outcome = "client_left";
    this.#phase = "closed";
  }
}

/** Answers that must not reach the caller as the upstream's: they speak of our credentials, or are no answer to a call. */
function faultOf(status: number, headers: IncomingHttpHeaders): DomainError | null {
  if (status >= 200 && status < 300) return null;
  const ours = status === 401 || status === 402 || status === 403;
  if (status >= 400 && !ours && isJson(headers)) return null;
  const seconds = Number(headers["retry-after"]);
  return new DomainError(
    "upstream_failed",
    `The model's engine answered with status ${status}, which cannot be passed on.`,
    {
      retryAfterSeconds: Number.isFinite(seconds) && seconds > 0 ? seconds : undefined,
    },
  );
}

function timedOut(what: string): DomainError {
  return new DomainError("upstream_timeout", `The model's engine ${what}.`);
}
