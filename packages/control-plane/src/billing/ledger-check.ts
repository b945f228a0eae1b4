import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
import { BillingStore, type CheckedProject } from "./billing-store.ts";

export interface LedgerReport {
  /** That ever had money. */
  readonly projects: number;
  readonly entries: number;
  /** Those of which something is not as it must be. */
  readonly wrong: readonly CheckedProject[];
}

/**
 * Proves that the ledger is whole: every project's balance is its ledger's sum, no sum of first rows is below zero, what holds have taken and
 * not given back is what running calls hold, and no call was charged twice.
 */
export class LedgerCheck {
  readonly #store: BillingStore;

  /** @param longReads the store's handle for long work: every row is read. */
  constructor(longReads: Kysely<Database>) {
    this.#store = new BillingStore(longReads);
  }

  async run(): Promise<LedgerReport> {
    const projects = await this.#store.checkedProjects();
    const entries = projects.reduce((sum, project) => sum + project.entries, 0);
    return { projects: projects.length, entries, wrong: projects.filter((project) => !isRight(project)) };
  }
}

function isRight({ balance, sum, lowest, held, openHolds, chargedTwice }: CheckedProject): boolean {
  return balance === sum && lowest >= 0 && held === openHolds && chargedTwice === 0;
}
