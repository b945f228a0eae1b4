import { DomainError } from "@fairlead/protocol/errors";
import type { CallLimits } from "./call-limits.ts";
import type { Meter } from "./meter.ts";
import type { MinuteWindow } from "./minute-window.ts";

/** Whose limits they are. */
export type LimitHolder = "key" | "agent" | "project";
export type LimitKind = "requests" | "tokens" | "parallel";

export interface LimitRefusal {
  readonly of: LimitHolder;
  readonly kind: LimitKind;
  readonly error: DomainError;
}

/** What is told of a limit in `x-ratelimit-*`. */
export interface LimitState {
  readonly limit: number;
  readonly remaining: number;
  /** Until all of it is free, if nothing is used meanwhile. */
  readonly resetMs: number;
}

const MINUTE_KINDS = { requests: "requestsPerMinute", tokens: "tokensPerMinute" } as const;
/** When a call that ran may have ended. */
const PARALLEL_RETRY_SECONDS = 1;

/** One holder's limits and what it uses of them. */
export class LimitScope {
  readonly of: LimitHolder;
  readonly meter: Meter;
  readonly #limits: CallLimits;

  constructor(of: LimitHolder, limits: CallLimits, meter: Meter) {
    this.of = of;
    this.#limits = limits;
    this.meter = meter;
  }

  /** @param tokens that the call is about to use. @returns null where the call fits. */
  judge(tokens: number, now: number): LimitRefusal | null {
    const { parallelCalls } = this.#limits;
    if (parallelCalls !== null && this.meter.running >= parallelCalls) return this.#busy(parallelCalls);
    return this.#judgeMinute("requests", 1, now) ?? this.#judgeMinute("tokens", tokens, now);
  }

  /** @returns null where there is no such limit. */
  state(kind: "requests" | "tokens", now: number): LimitState | null {
    const limit = this.#limits[MINUTE_KINDS[kind]];
    if (limit === null) return null;
    const window = this.meter[kind];
    return { limit, remaining: Math.max(0, limit - window.count(now)), resetMs: window.msUntil(0, now) };
  }

  #judgeMinute(kind: "requests" | "tokens", amount: number, now: number): LimitRefusal | null {
    const limit = this.#limits[MINUTE_KINDS[kind]];
    const window: MinuteWindow = this.meter[kind];
    if (limit === null || window.count(now) + amount <= limit) return null;
    if (amount > limit) return this.#neverFits(kind, amount, limit);
    const seconds = Math.max(1, Math.ceil(window.msUntil(limit - amount, now) / 1000));
    const need = kind === "tokens" ? `, and this call needs about ${number(amount)}` : "";
    const left = Math.max(0, limit - window.count(now));
    return this.#refuse(kind, {
      message:
        `${this.#whose} limit of ${number(limit)} ${kind} in a minute has ${number(left)} left just now${need}. ` +
        `Try again in ${seconds === 1 ? "a second" : `${seconds} seconds`}.`,
      retryAfterSeconds: seconds,
    });
  }

  #busy(limit: number): LimitRefusal {
    const calls = limit === 1 ? "one call" : `${number(limit)} calls`;
    return this.#refuse("parallel", {
      message: `${this.#whose} limit of ${calls} at the same time is reached. Try again when one of them has ended.`,
      retryAfterSeconds: PARALLEL_RETRY_SECONDS,
    });
  }

  #neverFits(kind: "requests" | "tokens", amount: number, limit: number): LimitRefusal {
    const limitWords = `${this.#whose} limit is ${number(limit)} ${kind} in a minute`;
    const message = `${limitWords}, and this call alone needs about ${number(amount)}: it will never fit. Make it smaller, or have the limit raised.`;
    return this.#refuse(kind, { message, final: true });
  }

  get #whose(): string {
    return `This ${this.of}'s`;
  }

  #refuse(
    kind: LimitKind,
    { message, ...details }: { readonly message: string; readonly retryAfterSeconds?: number; readonly final?: true },
  ): LimitRefusal {
    return { of: this.of, kind, error: new DomainError("rate_limit_exceeded", message, details) };
  }
}

function number(value: number): string {
  return value.toLocaleString("en-US");
}
