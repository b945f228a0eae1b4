import { DomainError } from "@fairlead/protocol/errors";
import type { CallLimits } from "./call-limits.ts";
import type { Meter } from "./meter.ts";
import type { MinuteWindow } from "./minute-window.ts";

/** The holder of the limits. */
export type LimitHolder = "key" | "agent" | "project";
export type LimitKind = "requests" | "tokens" | "parallel";

export interface LimitRefusal {
  readonly of: LimitHolder;
  readonly kind: LimitKind;
  readonly error: DomainError;
}

/** The values of the `x-ratelimit-*` headers. */
export interface LimitState {
  readonly limit: number;
  readonly remaining: number;
  /** Until fully available, if nothing else is used. */
  readonly resetMs: number;
}

const MINUTE_KINDS = { requests: "requestsPerMinute", tokens: "tokensPerMinute" } as const;
/** Retry delay when all parallel calls are in use. */
const PARALLEL_RETRY_SECONDS = 1;

/** One holder's limits and usage. */
export class LimitScope {
  readonly of: LimitHolder;
  readonly meter: Meter;
  readonly #limits: CallLimits;

  constructor(of: LimitHolder, limits: CallLimits, meter: Meter) {
    this.of = of;
    this.#limits = limits;
    this.meter = meter;
  }

  /** @param call its known tokens, and how many more it may use. @returns null if the call fits. */
  judge({ tokens, excess }: { readonly tokens: number; readonly excess: number }, now: number): LimitRefusal | null {
    const { parallelCalls } = this.#limits;
    if (parallelCalls !== null && this.meter.running >= parallelCalls) return this.#busy(parallelCalls);
    const refusal = this.#judgeMinute("requests", 1, now) ?? this.#judgeMinute("tokens", tokens, now);
    return refusal ?? this.#judgeExcess(tokens + excess, now);
  }

  /** @returns null without such a limit. */
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
        `${this.#whose} limit of ${number(limit)} ${kind} per minute has ${number(left)} left${need}. ` +
        `Retry in ${seconds === 1 ? "a second" : `${seconds} seconds`}.`,
      retryAfterSeconds: seconds,
    });
  }

  /** Only one call at a time may exceed what is left; otherwise parallel calls would exceed the limit together. */
  #judgeExcess(tokens: number, now: number): LimitRefusal | null {
    const limit = this.#limits.tokensPerMinute;
    const { excess } = this.meter;
    if (limit === null || excess === 0) return null;
    const left = Math.max(0, limit - this.meter.tokens.count(now));
    if (tokens + excess <= left) return null;
    return this.#refuse("tokens", {
      message:
        `${this.#whose} limit of ${number(limit)} tokens per minute has ${number(left)} left. Running calls may still use ` +
        `${number(excess)}, and this call up to ${number(tokens)}. Retry when they have finished, or set a lower output limit.`,
      retryAfterSeconds: PARALLEL_RETRY_SECONDS,
    });
  }

  #busy(limit: number): LimitRefusal {
    const calls = limit === 1 ? "one call" : `${number(limit)} calls`;
    return this.#refuse("parallel", {
      message: `${this.#whose} limit of ${calls} at a time is reached. Retry when a running request finishes.`,
      retryAfterSeconds: PARALLEL_RETRY_SECONDS,
    });
  }

  #neverFits(kind: "requests" | "tokens", amount: number, limit: number): LimitRefusal {
    const limitWords = `${this.#whose} limit is ${number(limit)} ${kind} per minute`;
    const message = `${limitWords}, and this call alone needs about ${number(amount)}. Make the request smaller or raise the limit.`;
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
