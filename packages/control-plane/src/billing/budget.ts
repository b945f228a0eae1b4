import { rfc3339 } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import { ID_PREFIXES } from "@fairlead/protocol/ids";
import { formatDollars } from "./money.ts";

/** What a key or an agent may spend, and in which time. Pure. Windows are calendar ones in UTC. */

/** Whose budget it is. */
export type Spender = "key" | "agent";

export function spenderOf(id: string): Spender {
  return id.startsWith(`${ID_PREFIXES.agent}_`) ? "agent" : "key";
}

/** Nano-dollars; null: no such limit. */
export interface Budget {
  readonly total: number | null;
  readonly daily: number | null;
  readonly monthly: number | null;
}

export type BudgetPeriod = keyof Budget;
const PERIODS: readonly BudgetPeriod[] = ["daily", "monthly", "total"];

/** The name that a period's spending is kept under: `2026-03-02`, `2026-03`, `total`. */
export function windowOf(period: BudgetPeriod, now: number): string {
  if (period === "total") return "total";
  return new Date(now).toISOString().slice(0, period === "daily" ? 10 : 7);
}

export function windowsOf(now: number): string[] {
  return PERIODS.map((period) => windowOf(period, now));
}

/** When the period's spending starts at nothing again (Unix ms); null: never. */
export function resetsAt(period: BudgetPeriod, now: number): number | null {
  const at = new Date(now);
  if (period === "daily") return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate() + 1);
  return period === "monthly" ? Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1) : null;
}

export interface Spending {
  readonly spender: Spender;
  /** Nano-dollars that calls of this window have cost. */
  spent(window: string): number;
  /** Nano-dollars set aside for calls that run. */
  readonly held: number;
}

export interface Need {
  /** Nano-dollars to set aside. */
  readonly needed: number;
  /** What of its held money is the call's own. */
  readonly own: number;
  readonly now: number;
}

/** Nano-dollars that calls have cost in the periods that count now. */
export type Spent = Readonly<Record<BudgetPeriod, number>>;

export function spentAt(now: number, spent: (window: string) => number): Spent {
  const of = (period: BudgetPeriod): number => spent(windowOf(period, now));
  return { total: of("total"), daily: of("daily"), monthly: of("monthly") };
}

/** Whether a key or an agent may set aside this much more. @returns the refusal, or null. */
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

/** Of two refusals: one that waiting does not lift. */
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

/** What only other calls stand in the way of can be asked again; what is spent cannot. */
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
    `${formatDollars(limit)}, ${formatDollars(spent)} is spent and ${formatDollars(held)} held by running calls.`;
  if (own + needed <= limit - spent) {
    const message = `${figures} Try again when they have ended.`;
    return new DomainError("held_by_running_calls", message, { retryAfterSeconds: 1, money });
  }
  const ending = money.resetsAt === null ? "It does not reset." : `It resets at ${money.resetsAt}.`;
  return new DomainError(`${spender}_budget_exceeded`, `${figures} ${ending}`, { money });
}
