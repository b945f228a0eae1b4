import type { LedgerEntry, OpenHold } from "./ledger.ts";

/** What calls have changed since the last write, as the rows that one transaction writes. */
export class BillingBatch {
  readonly entries: LedgerEntry[] = [];
  /** By call; the newest state of each. */
  readonly opened = new Map<string, OpenHold>();
  readonly closed = new Set<string>();
  /** By project: what its balance changes by. */
  readonly balances = new Map<string, number>();
  /** By key or agent, then by window: what it has spent there until now. Sums: a batch that is written twice says the same. */
  readonly spent = new Map<string, ReadonlyMap<string, number>>();

  get isEmpty(): boolean {
    return this.entries.length === 0 && this.opened.size === 0 && this.closed.size === 0 && this.spent.size === 0;
  }

  append(entry: LedgerEntry): void {
    this.entries.push(entry);
    this.balances.set(entry.projectId, (this.balances.get(entry.projectId) ?? 0) + entry.amount);
  }

  open(hold: OpenHold): void {
    this.opened.set(hold.callId, hold);
  }

  close(callId: string): void {
    this.opened.delete(callId);
    this.closed.add(callId);
  }

  spend(spenderId: string, spent: ReadonlyMap<string, number>): void {
    this.spent.set(spenderId, spent);
  }
}
