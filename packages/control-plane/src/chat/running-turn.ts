import { DomainError, ERROR_CODES, type ErrorCode } from "@fairlead/protocol/errors";
import { toDomainError } from "../http/error-response.ts";
import type { JsonObject } from "../inference/bridge/wire.ts";
import type { CallEnd } from "../inference/inference-call.ts";
import type { InferencePipeline } from "../inference/pipeline.ts";
import type { Log } from "../log.ts";
import type { AnswerReader, ToldFailure } from "./answer-reader.ts";
import { asUpstreams } from "./chat-errors.ts";
import type { LateEnds } from "./late-ends.ts";
import { PartialKeeper } from "./partial-keeper.ts";
import { responseAsWhole } from "./told-response.ts";
import { turnBody } from "./turn-body.ts";
import { streams, TOLD, type TurnAnswer, type TurnCall, type TurnCaller, tellingOf } from "./turn-call.ts";
import type { TurnCounters, TurnOutcome } from "./turn-counters.ts";
import type { TurnEnd, TurnLog } from "./turn-log.ts";
import { TurnSink } from "./turn-sink.ts";

export interface RunningTurnDeps {
  readonly pipeline: Pick<InferencePipeline, "start">;
  readonly turns: Pick<TurnLog, "flush" | "finish">;
  readonly late: Pick<LateEnds, "add">;
  readonly counters: TurnCounters;
  /** What becomes of a turn whose caller leaves. */
  readonly onLeave: "cancel" | "continue";
  /** How often the partial answer is stored. */
  readonly flushMs: number;
  readonly log: Log;
}

/** A turn whose question is stored. */
export interface StoredTurn {
  readonly call: TurnCall;
  readonly turnId: string;
  readonly model: string;
  readonly input: readonly JsonObject[];
  readonly reader: AnswerReader;
}

/** How a turn came to its end, before that is stored. */
interface Ending {
  readonly end: TurnEnd;
  readonly outcome: TurnOutcome;
  /** What its caller is told instead of an answer, where nothing went out yet. */
  readonly error: DomainError | null;
}

/** One turn on its way: the model's answer goes to the caller while it is read, and is stored before its end is told (design §7). */
export class RunningTurn {
  readonly #deps: RunningTurnDeps;
  readonly #turn: StoredTurn;
  readonly #caller: TurnCaller;
  readonly #sink: TurnSink;
  readonly #keeper: PartialKeeper;
  /** Of the call's body: it stays in memory with the turn, longer than the pipeline needs it. */
  #bodyBytes = 0;
  /** Resolves, never rejects, when it is stored, or cannot be. */
  readonly over: Promise<void>;
  readonly #resolveOver: () => void;
  /** Null while it runs. */
  outcome: TurnOutcome | null = null;
  /** Of one that was completed. */
  response: JsonObject | null = null;

  constructor(deps: RunningTurnDeps, turn: StoredTurn, caller: TurnCaller) {
    this.#deps = deps;
    this.#turn = turn;
    this.#caller = caller;
    this.#keeper = new PartialKeeper(deps.flushMs, () => this.#flush());
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

  /** Whether its caller was there to its end. */
  get heard(): boolean {
    return !this.#caller.gone.aborted;
  }

  /** A person wants no more of it; what there is stays. */
  stop(): void {
    this.#sink.cut("stopped");
  }

  /** @throws DomainError where nothing was answered, once that is stored. */
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
    const { call } = this.#turn;
    const { id, scope, dialect, headers, ticket, begunAt, uploadMs } = call;
    const caller = { kind: "member" as const, ...scope };
    try {
      // What was said in one dialect may not be sayable in the other.
      const body = [Buffer.from(JSON.stringify(turnBody({ ...this.#turn, ...call })))];
      this.#bodyBytes = body.reduce((sum, piece) => sum + piece.length, 0);
      const full = ticket.holdAnswerBytes(this.#bodyBytes);
      if (full !== null) throw full;
      const inference = { id, caller, dialect, body, headers, ticket, begunAt, uploadMs };
      const { ended } = await this.#deps.pipeline.start(inference, this.#sink);
      return this.#ending(await ended);
    } catch (error) {
      return this.#failedEnding(toDomainError(error), null);
    }
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
      const message = `The upstream refused the call with status ${rejection.status}.`;
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
      // Its caller is told that it failed, so that it may be asked again.
      late.add(turnId, { ...end, status: "incomplete", why: error.code, response: null });
      return error;
    } finally {
      if (this.outcome !== null) counters.ended(this.outcome);
    }
  }

  /** Nobody sees the end of an answer that could not be stored: it would not be there for the next turn. */
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
      // The next one, or the end of the turn, may find the store back.
      log.warn({ requestId: call.id, err: fault }, "a partial answer could not be stored");
    }
  }
}

/** What ends the stream in place of the upstream's own end; undefined where that is told. */
function lastFrames(reader: AnswerReader, { end, error }: Pick<Ending, "end" | "error">): string | undefined {
  if (error !== null && reader.failure === null) return reader.failed(error);
  return end.why === "stopped" ? reader.stopped(end.usage) : undefined;
}

/** @param failure whose code is ours, or the upstream's own. */
function toldError(failure: ToldFailure | null): DomainError | null {
  if (failure === null) return null;
  const { code, message } = failure;
  return new DomainError(isOurs(code) ? code : "upstream_failed", message);
}

const isOurs = (code: string): code is ErrorCode => Object.hasOwn(ERROR_CODES, code);

function brokenOff(): DomainError {
  return new DomainError("upstream_failed", "The upstream's answer ended before it was whole.");
}

function outcomeOf({ code }: DomainError): TurnOutcome {
  const { type } = ERROR_CODES[code];
  return type === "upstream_error" || type === "server_error" ? "failed" : "refused";
}
