import type { LedgerEntry, OpenHold } from "./ledger.ts";

/** Identifies a batch, so that a retry after a lost response is recognized. */
export interface BatchStamp {
  readonly owner: string;
  readonly number: number;
}

/** The changes made by calls since the last write, as the rows of one transaction. */
export class BillingBatch {
  /** Null if the transaction is never retried. */
  readonly stamp: BatchStamp | null;
  readonly entries: LedgerEntry[] = [];
  /** By call: the latest state of each. */
  readonly opened = new Map<string, OpenHold>();
  readonly closed = new Set<string>();
  /** By project: the change of its balance. */
  readonly balances = new Map<string, number>();
  /** By key or agent, then by window: spending since the last write. */
  readonly spent = new Map<string, Map<string, number>>();

  constructor(stamp: BatchStamp | null = null) {
    this.stamp = stamp;
  }

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

  spend(spenderId: string, amount: number, windows: readonly string[]): void {
    const spent = this.spent.get(spenderId) ?? new Map<string, number>();
    for (const window of windows) spent.set(window, (spent.get(window) ?? 0) + amount);
    this.spent.set(spenderId, spent);
  }
}
