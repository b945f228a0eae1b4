import { writeCall } from "@fairlead/dialects/calls/written-call";
import type { JsonObject } from "@fairlead/dialects/convert/wire";
import { toDomainError } from "@fairlead/hosting/errors/error-response";
import type { CallEnd } from "@fairlead/inference/calls/inference-call";
import type { Candidate } from "@fairlead/inference/calls/model-catalog";
import type { InferencePipeline, RunningCall } from "@fairlead/inference/calls/pipeline";
import { DomainError, ERROR_CODES, type ErrorCode } from "@fairlead/protocol/errors";
import type { Log } from "../../installation/process/log.ts";
import type { AnswerReader, ToldFailure } from "../answers/answer-reader.ts";
import { asUpstreams } from "../answers/chat-errors.ts";
import type { LateEnds } from "../answers/late-ends.ts";
import { responseAsWhole } from "../answers/response-view.ts";
import { TurnSink } from "../answers/turn-sink.ts";
import { turnBody } from "../items/turn-body.ts";
import type { TurnEnd, TurnLog } from "../store/turn-log.ts";
import { streams, TOLD, type TurnAnswer, type TurnCall, type TurnCaller, tellingOf } from "./turn-call.ts";
import type { TurnCounters, TurnOutcome } from "./turn-counters.ts";

/** Periodically stores the partial response, so that a crash loses only seconds of it (decisions/0022). */
class PartialFlush {
  readonly #everyMs: number;
  readonly #keep: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #stopped = false;

  /** @param keep must not reject. */
  constructor(everyMs: number, keep: () => Promise<void>) {
    this.#everyMs = everyMs;
    this.#keep = keep;
  }

  /** Signals new content. */
  touch(): void {
    if (this.#stopped || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#writing = this.#keep().finally(() => {
        this.#timer = undefined;
      });
    }, this.#everyMs);
  }

  /** Resolves when no write is running. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#writing;
  }
}

export interface RunningTurnDeps {
  readonly pipeline: Pick<InferencePipeline, "start">;
  readonly turns: Pick<TurnLog, "flush" | "finish">;
  readonly late: Pick<LateEnds, "add">;
  readonly counters: TurnCounters;
  /** What happens when the caller disconnects. */
  readonly onLeave: "cancel" | "continue";
  /** How often the partial response is stored. */
  readonly flushMs: number;
  readonly log: Log;
}

/** A turn whose question is stored. */
export interface StoredTurn {
  readonly call: TurnCall;
  readonly turnId: string;
  readonly model: string;
  /** The backends that serve the model. */
  readonly candidates: readonly Candidate[];
  readonly input: readonly JsonObject[];
  readonly reader: AnswerReader;
}

/** The outcome of a turn, before it is stored. */
interface Ending {
  readonly end: TurnEnd;
  readonly outcome: TurnOutcome;
  /** The error to return if nothing was sent yet. */
  readonly error: DomainError | null;
}

/** One running turn: streams the model's response to the caller and stores it before reporting its end. */
export class RunningTurn {
  readonly #deps: RunningTurnDeps;
  readonly #turn: StoredTurn;
  readonly #caller: TurnCaller;
  readonly #sink: TurnSink;
  readonly #keeper: PartialFlush;
  /** Size of the request body, which stays in memory longer than the pipeline needs it. */
  #bodyBytes = 0;
  /** Resolves, never rejects, when the turn is stored or storing has failed. */
  readonly over: Promise<void>;
  readonly #resolveOver: () => void;
  /** Null while running. */
  outcome: TurnOutcome | null = null;
  /** Set for a completed turn. */
  response: JsonObject | null = null;

  constructor(deps: RunningTurnDeps, turn: StoredTurn, caller: TurnCaller) {
    this.#deps = deps;
    this.#turn = turn;
    this.#caller = caller;
    this.#keeper = new PartialFlush(deps.flushMs, () => this.#flush());
    this.#sink = new TurnSink({
      reader: turn.reader,
      audience: caller,
      hold: (bytes) => turn.call.ticket.holdAnswerBytes(this.#bodyBytes + bytes),
      onProgress: () => this.#keeper.touch(),
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.over = promise;
    this.#resolveOver = resolve;
  }

  /** Whether the caller stayed connected to the end. */
  get heard(): boolean {
    return !this.#caller.gone.aborted;
  }

  /** Stopped by the user; the partial response is kept. */
  stop(): void {
    this.#sink.cut("stopped");
  }

  /** @throws DomainError if there was no response, after that is stored. */
  async run(): Promise<TurnAnswer> {
    const { gone } = this.#caller;
    const onGone = (): void => {
      if (this.#deps.onLeave === "cancel") this.#sink.cut("client_left");
      else this.#sink.goOnUnheard();
    };
    if (gone.aborted) onGone();
    else gone.addEventListener("abort", onGone, { once: true });
    try {
      const ending = await this.#untilEnded();
      await this.#keeper.stop();
      const fault = await this.#store(ending);
      return fault === null ? this.#answer(ending) : this.#unstored(fault);
    } finally {
      gone.removeEventListener("abort", onGone);
      this.#resolveOver();
    }
  }

  async #untilEnded(): Promise<Ending> {
    try {
      const { ended } = await this.#start();
      return this.#ending(await ended);
    } catch (error) {
      // Content from one dialect may not be expressible in the other.
      return this.#failedEnding(asUpstreams(toDomainError(error)), null);
    }
  }

  /** Separate from waiting for the end, which would keep the body in memory. */
  async #start(): Promise<RunningCall> {
    const { call, model, candidates } = this.#turn;
    const { id, scope, dialect, headers, ticket, begunAt, uploadMs } = call;
    const caller = { kind: "member" as const, ...scope };
    const body = turnBody({ ...this.#turn, ...call });
    const { bytes, scan } = writeCall(model, body, dialect);
    this.#bodyBytes = bytes.length;
    const full = ticket.holdAnswerBytes(this.#bodyBytes);
    if (full !== null) throw full;
    const known = { scan, parsed: { ...body, model }, model, heldBytes: bytes.length, candidates };
    const inference = { id, caller, dialect, body: [bytes], known, headers, ticket, begunAt, uploadMs };
    return await this.#deps.pipeline.start(inference, this.#sink);
  }

  #ending(call: CallEnd): Ending {
    const { reader } = this.#turn;
    const { cutBy, refusal, rejection, broken } = this.#sink;
    if (cutBy !== null) {
      const items = reader.items();
      const response = cutBy === "stopped" ? reader.partial(call.usage) : null;
      return {
        outcome: cutBy,
        error: null,
        end: { status: "incomplete", why: cutBy, items, usage: call.usage, response },
      };
    }
    if (rejection !== null) {
      const message = `The upstream rejected the call with status ${rejection.status}.`;
      return this.#failedEnding(new DomainError("invalid_request", message), call);
    }
    const error =
      (refusal && asUpstreams(refusal)) ??
      toldError(reader.failure) ??
      (broken || !reader.finished ? brokenOff() : null);
    if (error !== null) return this.#failedEnding(error, call);
    const { response } = reader;
    const end = { status: "completed" as const, why: "completed", items: reader.items(), usage: call.usage, response };
    return { outcome: "completed", error: null, end };
  }

  #failedEnding(error: DomainError, call: CallEnd | null): Ending {
    const items = this.#turn.reader.items();
    const isNothing = items.length === 0;
    const ended = { why: error.code, items, usage: call?.usage ?? null, response: null };
    const withdrawn = isNothing && ERROR_CODES[error.code].type === "invalid_request_error";
    const status = isNothing ? "failed" : "incomplete";
    return { outcome: outcomeOf(error), error, end: { ...ended, status, withdrawn } };
  }

  /** @returns why it could not be stored, or null. */
  async #store({ end, outcome }: Ending): Promise<DomainError | null> {
    const { turns, late, log, counters } = this.#deps;
    const { turnId, call } = this.#turn;
    try {
      await turns.finish(turnId, end);
      this.outcome = outcome;
      this.response = end.response;
      return null;
    } catch (fault) {
      this.outcome = "failed";
      log.error({ requestId: call.id, err: fault }, "a turn could not be stored");
      const error = toDomainError(fault);
      // The caller sees a failure and can retry.
      late.add(turnId, { ...end, status: "incomplete", why: error.code, response: null });
      return error;
    } finally {
      if (this.outcome !== null) counters.ended(this.outcome);
    }
  }

  /** A response that could not be stored must not end normally: the next turn would not see it. */
  #unstored(error: DomainError): TurnAnswer {
    if (!this.#sink.begun) throw error;
    this.#sink.conclude(this.#turn.reader.failed(error));
    return TOLD;
  }

  #answer({ end, error }: Ending): TurnAnswer {
    const { reader, call } = this.#turn;
    const { rejection, begun } = this.#sink;
    if (end.why === "client_left") return TOLD;
    if (rejection !== null) return { kind: "rejected", rejection };
    if (error !== null && !begun) throw error;
    if (streams(call)) {
      this.#sink.conclude(lastFrames(reader, { end, error }));
      return TOLD;
    }
    const whole = (): unknown => responseAsWhole(end.response ?? {}, tellingOf(call));
    const body = this.#sink.wholeBody ?? Buffer.from(JSON.stringify(whole()));
    return { kind: "whole", body };
  }

  async #flush(): Promise<void> {
    const { turns, log } = this.#deps;
    const { turnId, reader, call } = this.#turn;
    try {
      await turns.flush(turnId, reader.items());
    } catch (fault) {
      // A later attempt, or the end of the turn, may succeed.
      log.warn({ requestId: call.id, err: fault }, "a partial response could not be stored");
    }
  }
}

/** What ends the stream instead of the upstream's end; undefined to pass that on. */
function lastFrames(reader: AnswerReader, { end, error }: Pick<Ending, "end" | "error">): string | undefined {
  if (error !== null && reader.failure === null) return reader.failed(error);
  return end.why === "stopped" ? reader.stopped(end.usage) : undefined;
}

/** @param failure with our code or the upstream's. */
function toldError(failure: ToldFailure | null): DomainError | null {
  if (failure === null) return null;
  const { code, message } = failure;
  return new DomainError(isOurs(code) ? code : "upstream_failed", message);
}

const isOurs = (code: string): code is ErrorCode => Object.hasOwn(ERROR_CODES, code);

function brokenOff(): DomainError {
  return new DomainError("upstream_failed", "The upstream's response was cut off.");
}

function outcomeOf({ code }: DomainError): TurnOutcome {
  const { type } = ERROR_CODES[code];
  return type === "upstream_error" || type === "server_error" ? "failed" : "refused";
}
