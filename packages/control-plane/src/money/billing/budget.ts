import { DomainError } from "@fairlead/protocol/errors";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import { ID_PREFIXES } from "@fairlead/protocol/values/ids";
import { formatDollars } from "@fairlead/protocol/values/money";

/** Budgets of keys and agents per period. Pure. Periods are calendar periods in UTC. */

/** The budget's owner. */
export type Spender = "key" | "agent";

export function spenderOf(id: string): Spender {
  return id.startsWith(`${ID_PREFIXES.agent}_`) ? "agent" : "key";
}

/** Nano-dollars; null: no limit. */
export interface Budget {
  readonly total: number | null;
  readonly daily: number | null;
  readonly monthly: number | null;
}

export type BudgetPeriod = keyof Budget;
const PERIODS: readonly BudgetPeriod[] = ["daily", "monthly", "total"];

/** The name under which a period's spending is stored: `2026-03-02`, `2026-03`, `total`. */
export function windowOf(period: BudgetPeriod, now: number): string {
  if (period === "total") return "total";
  return new Date(now).toISOString().slice(0, period === "daily" ? 10 : 7);
}

export function windowsOf(now: number): string[] {
  return PERIODS.map((period) => windowOf(period, now));
}

/** When the period's spending resets (Unix ms); null: never. */
export function resetsAt(period: BudgetPeriod, now: number): number | null {
  const at = new Date(now);
  if (period === "daily") return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate() + 1);
  return period === "monthly" ? Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1) : null;
}

export interface Spending {
  readonly spender: Spender;
  /** Nano-dollars spent in this period. */
  spent(window: string): number;
  /** Nano-dollars reserved by running calls. */
  readonly held: number;
}

export interface Need {
  /** Nano-dollars to reserve. */
  readonly needed: number;
  /** The part of the reserved money that belongs to the call itself. */
  readonly own: number;
  readonly now: number;
}

/** Nano-dollars spent in the current periods. */
export type Spent = Readonly<Record<BudgetPeriod, number>>;

export function spentAt(now: number, spent: (window: string) => number): Spent {
  const of = (period: BudgetPeriod): number => spent(windowOf(period, now));
  return { total: of("total"), daily: of("daily"), monthly: of("monthly") };
}

/** Whether a key or agent may reserve this much more. @returns the error, or null. */
export function judgeBudget(budget: Budget, spending: Spending, need: Need): DomainError | null {
  let refusal: DomainError | null = null;
  for (const period of PERIODS) {
    const limit = budget[period];
    if (limit === null) continue;
    const spent = spending.spent(windowOf(period, need.now));
    const { held } = spending;
    if (need.needed > limit - spent - held) {
      refusal = firmer(refusal, overBudget({ spender: spending.spender, period, limit, spent, held, ...need }));
    }
  }
  return refusal;
}

/** Prefers an error that waiting does not resolve. */
export function firmer(a: DomainError | null, b: DomainError | null): DomainError | null {
  return a === null || (b !== null && a.code === "held_by_running_calls") ? b : a;
}

export function hasBudget(budget: Budget | null): boolean {
  return budget !== null && PERIODS.some((period) => budget[period] !== null);
}

interface Overrun extends Need {
  readonly spender: Spender;
  readonly period: BudgetPeriod;
  readonly limit: number;
  readonly spent: number;
  readonly held: number;
}

/** Retryable if only other running calls are in the way. */
function overBudget({ spender, period, limit, spent, held, needed, own, now }: Overrun): DomainError {
  const others = held - own;
  const reset = resetsAt(period, now);
  const money = {
    neededNanoDollars: needed,
    leftNanoDollars: Math.max(0, limit - spent - held),
    heldNanoDollars: others,
    resetsAt: reset === null ? null : rfc3339(reset),
  };
  const figures =
    `This call needs up to ${formatDollars(needed)}${own > 0 ? " more" : ""}; of this ${spender}'s ${period} budget of ` +
    `${formatDollars(limit)}, ${formatDollars(spent)} is spent and ${formatDollars(held)} is reserved by calls in progress.`;
  if (own + needed <= limit - spent) {
    const message = `${figures} Retry when they have finished.`;
    return new DomainError("held_by_running_calls", message, { retryAfterSeconds: 1, money });
  }
  const ending = money.resetsAt === null ? "It does not reset." : `It resets at ${money.resetsAt}.`;
  return new DomainError(`${spender}_budget_exceeded`, `${figures} ${ending}`, { money });
}
