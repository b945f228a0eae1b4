import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { Candidate, ModelCatalog } from "../inference/model-catalog.ts";
import { acknowledgement } from "./acknowledgement.ts";
import type { AnswerReader, ReadCall } from "./answer-reader.ts";
import { ChatReader } from "./chat-reader.ts";
import type { ChatScope } from "./chat-scope.ts";
import { buildInput } from "./history-input.ts";
import { LateEnds } from "./late-ends.ts";
import { inputTokensOf } from "./model-room.ts";
import { RecentCalls } from "./recent-calls.ts";
import { ResponsesReader } from "./responses-reader.ts";
import { RunningTurn, type RunningTurnDeps } from "./running-turn.ts";
import type { SessionLocks } from "./session-locks.ts";
import type { SessionService } from "./session-service.ts";
import { responseAsStream, responseAsWhole } from "./told-response.ts";
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
import { type NewTurnItems, readTurn } from "./turn-input.ts";
import type { BegunTurn, LastTurn, NewTurn, StoredAnswer, TurnLog } from "./turn-log.ts";

export interface TurnServiceDeps extends Omit<RunningTurnDeps, "late"> {
  readonly turns: Pick<TurnLog, "find" | "begin" | "flush" | "finish" | "lastTurn">;
  readonly sessions: Pick<SessionService, "open" | "require">;
  readonly models: Pick<ModelCatalog, "resolve" | "defaultModel">;
  readonly locks: SessionLocks;
  readonly clock: Clock;
}

/** Where a turn takes place, and who waits for it. */
interface Seat {
  readonly call: TurnCall;
  readonly caller: TurnCaller;
  /** Null: the turn opens one. */
  readonly sessionId: string | null;
}

/** A session's first turn. */
interface FirstTurn {
  readonly sessionId: string;
  readonly turnId: string;
}

/** What is asked, and of which model. */
interface Question {
  readonly turn: NewTurnItems;
  readonly model: string;
  readonly candidates: readonly Candidate[];
  readonly replaces?: string;
}

/** The last user text that begins a new session instead of a turn, exactly and trimmed (interface §3). */
const NEW_SESSION = "/new";
/** How long a call finds what became of the one that it repeats. */
const REPEAT_MS = 60_000;
const MOST_SESSIONS = 10_000;
/** Whole answers. */
const MOST_ANSWERS = 100;
const REPLAYED = { "idempotency-replayed": "true" };

/** Turns of chat sessions: from what a caller sends to what is stored of it (design §7). */
export class TurnService {
  readonly #deps: TurnServiceDeps;
  /** Of first questions that got no answer. */
  readonly #opened: RecentCalls<FirstTurn>;
  /** Of turns that ran to their end after their caller had left. */
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
   * Takes a turn to its end; its caller hears of it while it runs.
   * @throws DomainError of the input, the session, the model, limits, money or the upstream; then nothing was told.
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

  /** Asks the session's last question again; what was answered to it before is superseded. */
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

  /** Ends the session's running turn; what was answered so far stays. @returns whether one ran. */
  async stop(scope: ChatScope, sessionId: string): Promise<boolean> {
    await this.#deps.sessions.require(scope, sessionId);
    const turn = this.#running.get(sessionId);
    turn?.stop();
    return turn !== undefined;
  }

  /** Waits for the turns that run to be stored, as far as they can be. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#running.values(), ({ over }) => over));
    this.#late.close();
  }

  /** No model is called, and nothing is stored but the session (interface §6). */
  async #openNew(call: TurnCall, caller: TurnCaller): Promise<TurnAnswer> {
    const { sessions, clock, counters } = this.#deps;
    const model = modelNamedIn(call.body);
    const session = await sessions.open(call.scope, { model, openedFrom: call.sessionId ?? "" });
    caller.tellSession(session.id);
    counters.ended("new_session");
    const acknowledged = { sessionId: session.id, model: session.model, now: clock.now() };
    return { kind: "events", events: acknowledgement(acknowledged, tellingOf(call)) };
  }

  /** Of a first question: its session, where it was asked a moment ago and got no answer. */
  async #openedBefore(call: TurnCall): Promise<string | null> {
    const first = this.#opened.find(nameOf(call));
    if (first === null) return null;
    try {
      const { id, lastTurnId } = await this.#deps.sessions.require(call.scope, first.sessionId);
      // Where it went on, somebody has seen its name: a question without one is for a new session (interface §3).
      return lastTurnId === first.turnId ? id : null;
    } catch (error) {
      // Somebody has deleted it meanwhile.
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

  /** @throws DomainError of the model: before anything is stored. */
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

  /** A session outlives its model. */
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
    { turn, model, contextTokens }: Question & { readonly contextTokens: number },
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
      { call, turnId, model, input, reader },
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
      if (caller.gone.aborted) this.#rememberAnswer(call, { sessionId, turnId, dialect: call.dialect }, running);
    }
  }

  /** Clients send a first question again without a session's name: they may not have seen any. */
  #rememberFirst(call: TurnCall, first: FirstTurn, { outcome, heard }: RunningTurn): void {
    if (call.sessionId !== null) return;
    if (outcome === "completed" && heard) this.#opened.forget(nameOf(call));
    else this.#opened.remember(nameOf(call), first);
  }

  /** Who left a turn that went on finds its answer, and doubles no question. */
  #rememberAnswer(call: TurnCall, turn: Omit<StoredAnswer, "response">, { outcome, response }: RunningTurn): void {
    if (outcome === "completed" && response !== null) this.#unheard.remember(nameOf(call), { ...turn, response });
  }

  #replay({ sessionId, response }: StoredAnswer, call: TurnCall, caller: TurnCaller): TurnAnswer {
    caller.tellSession(sessionId);
    caller.carry(REPLAYED);
    this.#deps.counters.ended("replayed");
    const telling = tellingOf(call);
    if (streams(call)) return { kind: "events", events: responseAsStream(response, telling) };
    return { kind: "whole", body: Buffer.from(JSON.stringify(responseAsWhole(response, telling))) };
  }
}

const nameOf = (call: TurnCall): string => callName(call, call.requestHash);

function readerOf({ dialect }: TurnCall, call: ReadCall): AnswerReader {
  return dialect === "responses" ? new ResponsesReader(call) : new ChatReader(call);
}

function noModel(): never {
  const message = "No default model is configured: name one in `model`, as `<provider>/<model>`.";
  throw new DomainError("not_configured", message, { param: "model" });
}

function nothingToRegenerate(): never {
  throw new DomainError("invalid_request", "This session has no question yet that could be asked again.");
}
