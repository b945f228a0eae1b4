import type { Kysely } from "kysely";
import type { Database } from "../../installation/db/tables/schema.ts";
import { BillingStore, type CheckedProject } from "./billing-store.ts";

export interface LedgerReport {
  /** Projects that ever had money. */
  readonly projects: number;
  readonly entries: number;
  /** Projects with an inconsistency. */
  readonly wrong: readonly CheckedProject[];
}

/**
 * Verifies the ledger: every balance equals its ledger's sum and was never negative, unreleased holds match those of
 * running calls, and no call was charged twice.
 */
export class LedgerCheck {
  readonly #store: BillingStore;

  /** @param maintenance the store's handle without a time limit, because every row is read. */
  constructor(maintenance: Kysely<Database>) {
    this.#store = new BillingStore(maintenance);
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
