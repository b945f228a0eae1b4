import type { AuditActor } from "../../access/audit/audit.ts";
import type { AuditService } from "../../access/audit/audit-service.ts";
import { always, type Once } from "../../access/idempotency/once.ts";
import type { BillingService } from "./billing-service.ts";
import type { BillingStore } from "./billing-store.ts";
import type { LedgerEntry } from "./ledger.ts";

export interface CreditServiceDeps {
  readonly billing: BillingService;
  readonly store: BillingStore;
  readonly audit: AuditService;
  /** For the project's name, and whether there is such a project. */
  readonly projects: { nameOf(projectId: string): Promise<string> };
}

export interface Credit {
  readonly projectId: string;
  /** Nano-dollars; below zero takes back. */
  readonly amount: number;
  readonly note: string;
}

/** Money that comes from outside, or goes back there; who may ask for it is the caller's matter. */
export class CreditService {
  readonly #deps: CreditServiceDeps;

  constructor(deps: CreditServiceDeps) {
    this.#deps = deps;
  }

  /** @throws DomainError not_found; invalid_request for more than there is to take, or than a balance can hold; unavailable */
  async add(
    actor: AuditActor,
    { projectId, amount, note }: Credit,
    once: Once<LedgerEntry> = always,
  ): Promise<LedgerEntry> {
    const { billing, store, audit, projects } = this.#deps;
    const name = await projects.nameOf(projectId);
    const kind = amount < 0 ? "adjust" : "credit";
    return billing.change({ projectId, kind, amount, note }, (write) =>
      store.transaction((_, transaction) =>
        once(transaction, async () => {
          const entry = await write(transaction);
          await audit.record(transaction, {
            actor,
            action: "billing.credit",
            projectId,
            resource: { type: "project", id: projectId, name },
            detail: { amountNanoDollars: amount, note },
          });
          return entry;
        }),
      ),
    );
  }
}
