import { z } from "zod";
import { OPERATOR } from "../../access/audit/audit.ts";
import type { CreditService } from "../../money/billing/credit-service.ts";
import { creditFields, ledgerEntrySchema, toLedgerEntry } from "../../money/billing/ledger.ts";
import type { LedgerCheck } from "../../money/billing/ledger-check.ts";

/** What the operator may do with money from the machine itself, without a session. */

export const addCreditsSchema = z.strictObject({ projectId: z.string().min(1), ...creditFields });
export const addCreditsAnswerSchema = z.object({ ledgerEntry: ledgerEntrySchema });
export const ledgerReportSchema = z.object({
  projects: z.number(),
  entries: z.number(),
  wrong: z.array(
    z.object({
      projectId: z.string(),
      entries: z.number(),
      balance: z.number(),
      sum: z.number(),
      lowest: z.number(),
      held: z.number(),
      openHolds: z.number(),
      chargedTwice: z.number(),
    }),
  ),
});

export type AddCreditsInput = z.input<typeof addCreditsSchema>;
export type AddCreditsAnswer = z.infer<typeof addCreditsAnswerSchema>;
export type LedgerReportAnswer = z.infer<typeof ledgerReportSchema>;

export interface MoneyAdminDeps {
  readonly credits: CreditService;
  readonly ledgerCheck: LedgerCheck;
}

export class MoneyAdmin {
  readonly #deps: MoneyAdminDeps;

  constructor(deps: MoneyAdminDeps) {
    this.#deps = deps;
  }

  /** @param input parsed by `addCreditsSchema`. @throws DomainError not_found, invalid_request */
  async addCredits(input: z.output<typeof addCreditsSchema>): Promise<AddCreditsAnswer> {
    const { projectId, amountNanoDollars: amount, note } = input;
    const entry = await this.#deps.credits.add(OPERATOR, { projectId, amount, note });
    return { ledgerEntry: toLedgerEntry(entry) };
  }

  async checkLedger(): Promise<LedgerReportAnswer> {
    const { projects, entries, wrong } = await this.#deps.ledgerCheck.run();
    return { projects, entries, wrong: [...wrong] };
  }
}
