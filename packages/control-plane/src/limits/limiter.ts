import type { Clock } from "@fairlead/protocol/clock";
import type { CallLimits } from "./call-limits.ts";
import { type LimitHolder, type LimitRefusal, LimitScope, type LimitState } from "./limit-scope.ts";
import { Meter } from "./meter.ts";
import { type Permit, refused, UNLIMITED } from "./permit.ts";

/** Whoever has limits, with what it may use. */
export interface LimitedParty {
  readonly id: string;
  readonly limits: CallLimits;
}

export interface LimitedCaller extends LimitedParty {
  readonly kind: "key" | "agent";
}

export interface LimitedCall {
  /** Null for one without limits of its own: a member who chats. */
  readonly caller: LimitedCaller | null;
  readonly project: LimitedParty;
  /** Estimates, corrected by the permit. Of the output only what surely comes: a caller's own limit may be huge. */
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** Meters below which nobody looks for idle ones. */
const FEW_METERS = 1024;
/** Output that is counted at a time, as an answer grows. */
const COUNTED_TOKENS = 256;

/**
 * How often and how much keys, agents and projects may call: in this process's memory, which holds a meter for whoever has a limit and
 * called within the last minute. A refused call counts for nothing.
 */
export class Limiter {
  /** How often a call was refused, by `<holder> <kind>`. */
  readonly refusals = new Map<string, number>();
  readonly #clock: Clock;
  readonly #meters = new Map<string, Meter>();
  #lookForIdleAt = FEW_METERS;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get meters(): number {
    return this.#meters.size;
  }

  admit(call: LimitedCall): Permit {
    const now = this.#clock.monotonic();
    const scopes = this.#scopesOf(call, now);
    if (scopes.length === 0) return UNLIMITED;
    for (const scope of scopes) {
      const refusal = scope.judge(call.inputTokens + call.outputTokens, now);
      if (refusal !== null) return this.#refuse(refusal, scopes, now);
    }
    return new RunningPermit(scopes, call, this.#clock);
  }

  /** What an answer that costs nothing tells of the limits. */
  headersFor({ caller, project }: Pick<LimitedCall, "caller" | "project">): Permit["headers"] {
    const now = this.#clock.monotonic();
    return headersOf(this.#scopesOf({ caller, project }, now), now);
  }

  #scopesOf({ caller, project }: Pick<LimitedCall, "caller" | "project">, now: number): readonly LimitScope[] {
    const scopes: LimitScope[] = [];
    if (caller !== null && isLimited(caller.limits)) scopes.push(this.#scope(caller.kind, caller, now));
    if (isLimited(project.limits)) scopes.push(this.#scope("project", project, now));
    return scopes;
  }

  #scope(of: LimitHolder, { id, limits }: LimitedParty, now: number): LimitScope {
    let meter = this.#meters.get(id);
    if (meter === undefined) {
      this.#forgetIdle(now);
      meter = new Meter();
      this.#meters.set(id, meter);
    }
    return new LimitScope(of, limits, meter);
  }

  #forgetIdle(now: number): void {
    if (this.#meters.size < this.#lookForIdleAt) return;
    for (const [id, meter] of this.#meters) if (meter.isIdle(now)) this.#meters.delete(id);
    this.#lookForIdleAt = Math.max(FEW_METERS, 2 * this.#meters.size);
  }

  #refuse({ of, kind, error }: LimitRefusal, scopes: readonly LimitScope[], now: number): Permit {
    const name = `${of} ${kind}`;
    this.refusals.set(name, (this.refusals.get(name) ?? 0) + 1);
    return refused(error, headersOf(scopes, now));
  }
}

class RunningPermit implements Permit {
  readonly headers: Permit["headers"];
  readonly refusal = null;
  readonly #scopes: readonly LimitScope[];
  readonly #clock: Clock;
  readonly #inputTokens: number;
  /** By scope: where the estimate was counted. */
  readonly #steps: readonly number[];
  #counted: number;
  #ended = false;

  constructor(scopes: readonly LimitScope[], { inputTokens, outputTokens }: LimitedCall, clock: Clock) {
    const now = clock.monotonic();
    this.#scopes = scopes;
    this.#clock = clock;
    this.#inputTokens = inputTokens;
    this.#counted = inputTokens + outputTokens;
    this.#steps = scopes.map(({ meter }) => {
      meter.running++;
      meter.requests.add(1, now);
      return meter.tokens.add(this.#counted, now);
    });
    this.headers = headersOf(scopes, now);
  }

  generated(outputTokens: number): void {
    const total = this.#inputTokens + outputTokens;
    if (!this.#ended && total >= this.#counted + COUNTED_TOKENS) this.#correct(total);
  }

  end(tokens: number | null): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const { meter } of this.#scopes) meter.running--;
    this.#correct(tokens ?? 0);
  }

  /** More counts now, when it is known; less is taken out of what the estimate was. */
  #correct(total: number): void {
    const now = this.#clock.monotonic();
    const more = total - this.#counted;
    this.#counted = total;
    for (const [at, { meter }] of this.#scopes.entries()) {
      if (more > 0) meter.tokens.add(more, now);
      else meter.tokens.takeBack(-more, this.#steps[at] ?? 0, now);
    }
  }
}

function isLimited({ requestsPerMinute, tokensPerMinute, parallelCalls }: CallLimits): boolean {
  return requestsPerMinute !== null || tokensPerMinute !== null || parallelCalls !== null;
}

/** OpenAI's names and forms. Of two limits the one that is nearer is told. */
function headersOf(scopes: readonly LimitScope[], now: number): Permit["headers"] {
  const headers: Record<string, string> = {};
  for (const kind of ["requests", "tokens"] as const) {
    const state = nearest(scopes.map((scope) => scope.state(kind, now)));
    if (state === null) continue;
    headers[`x-ratelimit-limit-${kind}`] = String(state.limit);
    headers[`x-ratelimit-remaining-${kind}`] = String(state.remaining);
    headers[`x-ratelimit-reset-${kind}`] = `${Math.ceil(state.resetMs / 1000)}s`;
  }
  return headers;
}

function nearest(states: readonly (LimitState | null)[]): LimitState | null {
  let found: LimitState | null = null;
  for (const state of states) {
    if (state !== null && (found === null || state.remaining < found.remaining)) found = state;
  }
  return found;
}
