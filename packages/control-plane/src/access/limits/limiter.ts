import type { CallSize } from "@fairlead/inference/ports/call-limiter";
import { type Permit, refused, UNLIMITED } from "@fairlead/inference/ports/permit";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { CallLimits } from "./call-limits.ts";
import { type LimitHolder, type LimitRefusal, LimitScope, type LimitState } from "./limit-scope.ts";
import { Meter } from "./meter.ts";

/** A key, agent or project with limits. */
export interface LimitedParty {
  readonly id: string;
  readonly limits: CallLimits;
}

export interface LimitedCaller extends LimitedParty {
  readonly kind: "key" | "agent";
}

export interface LimitedCall extends CallSize {
  /** Null if the caller has no limits, such as a member who chats. */
  readonly caller: LimitedCaller | null;
  readonly project: LimitedParty;
}

/** Below this number of meters, idle ones are not removed. */
const FEW_METERS = 1024;
/** Output tokens are counted in steps of this size while a response grows. */
const COUNTED_TOKENS = 256;

/**
 * Rate limits of keys, agents and projects, in this process's memory: one meter for each that has a limit and called
 * within the last minute. Rejected calls do not count.
 */
export class Limiter {
  /** Number of rejected calls, by `<holder> <kind>`. */
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
      const refusal = scope.judge({ tokens: call.inputTokens + call.outputTokens, excess: call.excessTokens }, now);
      if (refusal !== null) return this.#refuse(refusal, scopes, now);
    }
    return new RunningPermit(scopes, call, this.#clock);
  }

  /** Rate limit headers of a response that costs nothing. */
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
  readonly #excess: number;
  /** By scope: the step in which the estimate was counted. */
  readonly #steps: readonly number[];
  #counted: number;
  #ended = false;

  constructor(scopes: readonly LimitScope[], call: LimitedCall, clock: Clock) {
    const { inputTokens, outputTokens, excessTokens } = call;
    const now = clock.monotonic();
    this.#scopes = scopes;
    this.#clock = clock;
    this.#inputTokens = inputTokens;
    this.#excess = excessTokens;
    this.#counted = inputTokens + outputTokens;
    this.#steps = scopes.map(({ meter }) => {
      meter.running++;
      meter.excess += excessTokens;
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
    for (const { meter } of this.#scopes) {
      meter.running--;
      meter.excess -= this.#excess;
    }
    this.#correct(tokens ?? 0);
  }

  /** An excess counts now, when it is known; a shortfall is taken out of the step of the estimate. */
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

/** OpenAI's names and formats. Of two limits, reports the one closest to being reached. */
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
