import type { JsonObject } from "@fairlead/dialects/convert/wire";
import type { Candidate, ModelCatalog } from "@fairlead/inference/calls/model-catalog";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import { acknowledgement } from "../answers/acknowledgement.ts";
import type { AnswerReader, ReadCall } from "../answers/answer-reader.ts";
import { ChatReader } from "../answers/chat-reader.ts";
import { LateEnds } from "../answers/late-ends.ts";
import { responseAsWhole, viewAsStream } from "../answers/response-view.ts";
import { ResponsesReader } from "../answers/responses-reader.ts";
import type { ChatScope } from "../items/chat-scope.ts";
import { buildInput } from "../items/history-input.ts";
import type { TurnDialect } from "../items/turn-dialect.ts";
import { type NewTurnItems, readTurn } from "../items/turn-input.ts";
import type { SessionLocks } from "../sessions/session-locks.ts";
import type { ChatSessionService } from "../sessions/session-service.ts";
import type { BegunTurn, LastTurn, NewTurn, StoredAnswer, TurnLog } from "../store/turn-log.ts";
import { RunningTurn, type RunningTurnDeps } from "./running-turn.ts";
import {
  callName,
  modelNamedIn,
  streams,
  TOLD,
  type TurnAnswer,
  type TurnCall,
  type TurnCaller,
  tellingOf,
} from "./turn-call.ts";

interface RecentCallsOptions {
  readonly clock: Clock;
  /** How long a call counts as recent. */
  readonly ms: number;
  readonly mostEntries: number;
}

/**
 * Results of recent calls, for retries: clients automatically retry what was rejected or interrupted and may have seen
 * nothing of it. In memory and bounded; a miss only duplicates a question.
 */
class RecentCalls<T> {
  readonly #options: RecentCallsOptions;
  /** By call, oldest first. */
  readonly #entries = new Map<string, { readonly value: T; readonly until: number }>();

  constructor(options: RecentCallsOptions) {
    this.#options = options;
  }

  remember(call: string, value: T): void {
    const { clock, ms, mostEntries } = this.#options;
    this.#entries.delete(call);
    this.#entries.set(call, { value, until: clock.monotonic() + ms });
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= mostEntries) break;
      this.#entries.delete(oldest);
    }
  }

  find(call: string): T | null {
    const entry = this.#entries.get(call);
    return entry !== undefined && entry.until > this.#options.clock.monotonic() ? entry.value : null;
  }

  forget(call: string): void {
    this.#entries.delete(call);
  }
}

/** How much history fits into a model's context. Pure. */

/** For models with an unknown context size. */
const UNKNOWN_CONTEXT_TOKENS = 65_536;
/** Share of the context reserved for a response without a limit. */
const ANSWER_SHARE = 0.25;
const MOST_ANSWER_TOKENS = 8192;
/** However long the response may be, the turn's input must fit. */
const LEAST_INPUT_SHARE = 0.25;

const LIMIT_FIELDS = ["max_output_tokens", "max_completion_tokens", "max_tokens"];

/** @returns input tokens: the smallest context of the backends that may serve the call, minus the response. */
function inputTokensOf(candidates: readonly Candidate[], body: JsonObject): number {
  const rooms = candidates.map(({ contextTokens, maxOutputTokens }) => {
    const context = contextTokens ?? UNKNOWN_CONTEXT_TOKENS;
    const usual = Math.min(maxOutputTokens ?? MOST_ANSWER_TOKENS, MOST_ANSWER_TOKENS, context * ANSWER_SHARE);
    return Math.max(context - (limitOf(body) ?? usual), context * LEAST_INPUT_SHARE);
  });
  return Math.floor(Math.min(...rooms));
}

function limitOf(body: JsonObject): number | null {
  const limits = LIMIT_FIELDS.flatMap((name) => (typeof body[name] === "number" ? [body[name]] : []));
  return limits.length === 0 ? null : Math.max(...limits);
}

export interface TurnServiceDeps extends Omit<RunningTurnDeps, "late"> {
  readonly turns: Pick<TurnLog, "find" | "begin" | "flush" | "finish" | "lastTurn">;
  readonly sessions: Pick<ChatSessionService, "open" | "require">;
  readonly models: Pick<ModelCatalog, "resolve" | "defaultModel">;
  readonly locks: SessionLocks;
  readonly clock: Clock;
}

/** The session and client of a turn. */
interface Seat {
  readonly call: TurnCall;
  readonly caller: TurnCaller;
  /** Null: the turn creates a session. */
  readonly sessionId: string | null;
}

/** A session's first turn. */
interface FirstTurn {
  readonly sessionId: string;
  readonly turnId: string;
}

/** The input and the model. */
interface Question {
  readonly turn: NewTurnItems;
  readonly model: string;
  readonly candidates: readonly Candidate[];
  readonly replaces?: string;
}

/** The user text that starts a new session instead of a turn, trimmed and exact (docs/interface.md §3). */
const NEW_SESSION = "/new";
/** How long the result of a call can be found by its retry. */
const REPEAT_MS = 60_000;
const MOST_SESSIONS = 10_000;
/** Limit for complete responses. */
const MOST_ANSWERS = 100;
const MOST_ANSWER_BYTES = 1024 * 1024;
const REPLAYED = { "idempotency-replayed": "true" };

/** Turns of chat sessions, from the request to the stored result. */
export class TurnService {
  readonly #deps: TurnServiceDeps;
  /** First questions that got no response. */
  readonly #opened: RecentCalls<FirstTurn>;
  /** Turns that finished after their caller disconnected. */
  readonly #unheard: RecentCalls<StoredAnswer>;
  readonly #late: LateEnds;
  /** By session. */
  readonly #running = new Map<string, RunningTurn>();

  constructor(deps: TurnServiceDeps) {
    this.#deps = deps;
    this.#late = new LateEnds(deps.turns);
    const { clock } = deps;
    this.#opened = new RecentCalls({ clock, ms: REPEAT_MS, mostEntries: MOST_SESSIONS });
    this.#unheard = new RecentCalls({ clock, ms: REPEAT_MS, mostEntries: MOST_ANSWERS });
  }

  /**
   * Runs a turn, streaming to its caller.
   * @throws DomainError for the input, session, model, limits, money or upstream, if nothing was sent.
   */
  async take(call: TurnCall, caller: TurnCaller): Promise<TurnAnswer> {
    const { sessions, turns } = this.#deps;
    if (call.sessionId !== null) {
      await sessions.require(call.scope, call.sessionId);
      caller.tellSession(call.sessionId);
    }
    const turn = readTurn(call.body);
    if (turn.kind === "question" && turn.text.trim() === NEW_SESSION) return await this.#openNew(call, caller);
    const { idempotencyKey, requestHash } = call;
    const kept = idempotencyKey === null ? null : await turns.find(call.scope, { idempotencyKey, requestHash });
    if (kept !== null) return this.#replay(kept, call, caller);
    const sessionId = call.sessionId ?? (await this.#openedBefore(call));
    return await this.#inLine({ call, caller, sessionId }, () => this.#question(call, sessionId, turn));
  }

  /** Regenerates the response to the session's last question; the previous response is superseded. */
  async regenerate(call: TurnCall & { readonly sessionId: string }, caller: TurnCaller): Promise<TurnAnswer> {
    const { sessions, turns } = this.#deps;
    const { sessionId, scope } = call;
    await sessions.require(scope, sessionId);
    caller.tellSession(sessionId);
    return await this.#inLine({ call, caller, sessionId }, async () => {
      const last: LastTurn = (await turns.lastTurn(scope, sessionId)) ?? nothingToRegenerate();
      return { ...(await this.#question(call, sessionId, last.turn)), replaces: last.turnId };
    });
  }

  /** Stops the session's running turn and keeps its partial response. @returns whether one was running. */
  async stop(scope: ChatScope, sessionId: string): Promise<boolean> {
    await this.#deps.sessions.require(scope, sessionId);
    const turn = this.#running.get(sessionId);
    turn?.stop();
    return turn !== undefined;
  }

  /** Waits until running turns are stored, as far as possible. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#running.values(), ({ over }) => over));
    this.#late.close();
  }

  /** Calls no model and stores only the session (docs/interface.md §6). */
  async #openNew(call: TurnCall, caller: TurnCaller): Promise<TurnAnswer> {
    const { sessions, clock, counters } = this.#deps;
    const model = modelNamedIn(call.body);
    const session = await sessions.open(call.scope, { model, openedFrom: call.sessionId ?? "" });
    caller.tellSession(session.id);
    counters.ended("new_session");
    const acknowledged = { sessionId: session.id, model: session.model, now: clock.now() };
    return { kind: "events", events: acknowledgement(acknowledged, tellingOf(call)) };
  }

  /** The session of a first question that was asked moments ago without a response. */
  async #openedBefore(call: TurnCall): Promise<string | null> {
    const first = this.#opened.find(nameOf(call));
    if (first === null) return null;
    try {
      const { id, lastTurnId } = await this.#deps.sessions.require(call.scope, first.sessionId);
      // If the session has continued, a client knows its name; a question without one is for a new session (docs/interface.md §3).
      return lastTurnId === first.turnId ? id : null;
    } catch (error) {
      // The session was deleted in the meantime.
      if (error instanceof DomainError && error.code === "session_not_found") return null;
      throw error;
    }
  }

  async #inLine(seat: Seat, ask: () => Promise<Question>): Promise<TurnAnswer> {
    if (seat.sessionId === null) return await this.#begin(seat, await ask());
    const { call, caller } = seat;
    const release = await this.#deps.locks.take(seat.sessionId, caller.gone);
    if (release === null) return TOLD;
    try {
      const unheard = this.#unheard.find(nameOf(call));
      if (unheard === null) return await this.#begin(seat, await ask());
      this.#unheard.forget(nameOf(call));
      return this.#replay(unheard, call, caller);
    } finally {
      release();
    }
  }

  /** @throws DomainError for the model, before anything is stored. */
  async #question(call: TurnCall, sessionId: string | null, turn: NewTurnItems): Promise<Question> {
    const { models, sessions } = this.#deps;
    const { projectId } = call.scope;
    const named = modelNamedIn(call.body);
    if (named !== null) return { turn, model: named, ...(await models.resolve(projectId, named)) };
    const session = sessionId === null ? null : await sessions.require(call.scope, sessionId);
    if (session?.model) {
      const last = await this.#stillThere(call.scope, session.model);
      if (last !== null) return { turn, model: session.model, candidates: last };
    }
    const model = (await models.defaultModel(projectId)) ?? noModel();
    return { turn, model, ...(await models.resolve(projectId, model)) };
  }

  /** The session's last model may no longer exist. */
  async #stillThere({ projectId }: ChatScope, model: string): Promise<readonly Candidate[] | null> {
    try {
      return (await this.#deps.models.resolve(projectId, model)).candidates;
    } catch (error) {
      if (error instanceof DomainError && error.code === "model_not_found") return null;
      throw error;
    }
  }

  async #begin({ call, caller, sessionId }: Seat, question: Question): Promise<TurnAnswer> {
    const { turn, model, candidates, replaces } = question;
    const contextTokens = inputTokensOf(candidates, call.body);
    const { dialect, idempotencyKey, requestHash } = call;
    const known = { turn, dialect, model, contextTokens, requestHash, idempotencyKey };
    const begun = await this.#deps.turns.begin(
      call.scope,
      sessionId,
      replaces === undefined ? known : ({ ...known, replaces } satisfies NewTurn),
    );
    caller.tellSession(begun.sessionId);
    if (begun.replay !== null) return this.#replay(begun.replay, call, caller);
    if (sessionId !== null) return await this.#run(begun, { call, caller, sessionId }, { ...question, contextTokens });
    const release = await this.#deps.locks.take(begun.sessionId, new AbortController().signal);
    try {
      return await this.#run(begun, { call, caller, sessionId }, { ...question, contextTokens });
    } finally {
      release?.();
    }
  }

  async #run(
    begun: BegunTurn & { readonly replay: null },
    { call, caller }: Seat,
    { turn, model, candidates, contextTokens }: Question & { readonly contextTokens: number },
  ): Promise<TurnAnswer> {
    const { counters, clock } = this.#deps;
    const { sessionId, turnId, history, items } = begun;
    const { input, cutItems } = buildInput(history, { ...turn, items }, { contextTokens });
    if (cutItems > 0) caller.carry({ "x-fairlead-cut-items": String(cutItems) });
    const metadata = { session_id: sessionId, ...(cutItems > 0 ? { cut_items: String(cutItems) } : {}) };
    const createdAt = Math.floor(clock.now() / 1000);
    const reader = readerOf(call, { requestId: call.id, model, createdAt, metadata, body: call.body });
    const running = new RunningTurn(
      { ...this.#deps, late: this.#late },
      { call, turnId, model, candidates, input, reader },
      caller,
    );
    const forRepeats = (): void => this.#rememberFirst(call, { sessionId, turnId }, running);
    caller.gone.addEventListener("abort", forRepeats, { once: true });
    this.#running.set(sessionId, running);
    counters.running++;
    try {
      return await running.run();
    } finally {
      counters.running--;
      this.#running.delete(sessionId);
      caller.gone.removeEventListener("abort", forRepeats);
      forRepeats();
      const isUnheard = caller.gone.aborted && reader.size <= MOST_ANSWER_BYTES;
      if (isUnheard) this.#rememberAnswer(call, { sessionId, turnId, dialect: call.dialect }, running);
    }
  }

  /** Clients retry a first question without a session, because they have not seen its name. */
  #rememberFirst(call: TurnCall, first: FirstTurn, { outcome, heard }: RunningTurn): void {
    if (call.sessionId !== null) return;
    if (outcome === "completed" && heard) this.#opened.forget(nameOf(call));
    else this.#opened.remember(nameOf(call), first);
  }

  /** A client that disconnected finds the finished response instead of repeating the question. */
  #rememberAnswer(call: TurnCall, turn: Omit<StoredAnswer, "response">, { outcome, response }: RunningTurn): void {
    if (outcome === "completed" && response !== null) this.#unheard.remember(nameOf(call), { ...turn, response });
  }

  #replay({ sessionId, response }: StoredAnswer, call: TurnCall, caller: TurnCaller): TurnAnswer {
    caller.tellSession(sessionId);
    caller.carry(REPLAYED);
    this.#deps.counters.ended("replayed");
    const telling = tellingOf(call);
    if (streams(call)) return { kind: "events", events: viewAsStream(response, telling) };
    return { kind: "whole", body: Buffer.from(JSON.stringify(responseAsWhole(response, telling))) };
  }
}

const nameOf = (call: TurnCall): string => callName(call, call.requestHash);

const READERS: Readonly<Record<TurnDialect, new (call: ReadCall) => AnswerReader>> = {
  chat: ChatReader,
  responses: ResponsesReader,
};

function readerOf({ dialect }: TurnCall, call: ReadCall): AnswerReader {
  return new READERS[dialect](call);
}

function noModel(): never {
  const message = "No default model is configured. Set `model` to `<provider>/<model>`.";
  throw new DomainError("not_configured", message, { param: "model" });
}

function nothingToRegenerate(): never {
  throw new DomainError("invalid_request", "This session has no question to answer again.");
}
