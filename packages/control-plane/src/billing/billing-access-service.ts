import { DomainError } from "@fairlead/protocol/errors";
import type { AuditService } from "../audit/audit-service.ts";
import type { ProjectAccess } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import { always, type Once } from "../idempotency/once.ts";
import type { Account } from "./account.ts";
import type { BillingService } from "./billing-service.ts";
import type { BillingStore } from "./billing-store.ts";
import type { BillingMode, LedgerEntry } from "./ledger.ts";
import { formatDollars, MAX_NANO_DOLLARS } from "./money.ts";

export interface BillingAccessDeps {
  readonly billing: BillingService;
  readonly store: BillingStore;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  /** Whether there is such a project. */
  readonly projects: { nameOf(projectId: string): Promise<string> };
}

export interface Balance {
  readonly mode: BillingMode;
  /** Nano-dollars that a new call could set aside. */
  readonly free: number;
  /** Nano-dollars set aside for calls that run. */
  readonly held: number;
  readonly runningCalls: number;
}

interface Credit {
  readonly projectId: string;
  /** Nano-dollars; below zero takes back. */
  readonly amount: number;
  readonly note: string;
}

/** What people may see and do of a project's money. */
export class BillingAccessService {
  readonly #deps: BillingAccessDeps;

  constructor(deps: BillingAccessDeps) {
    this.#deps = deps;
  }

  /** @throws DomainError not_found, permission_denied */
  async balance(caller: UserPrincipal, projectId: string): Promise<Balance> {
    const { billing, access } = this.#deps;
    if (!caller.platformAdmin) await access.require(caller, projectId, "billing.read");
    else await this.#deps.projects.nameOf(projectId);
    const { balance, held, running } = await billing.account(projectId);
    return { mode: billing.mode, free: balance, held, runningCalls: running };
  }

  /** The newest first. @throws DomainError not_found, permission_denied */
  async ledger(
    caller: UserPrincipal,
    projectId: string,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly LedgerEntry[]> {
    await this.#deps.access.require(caller, projectId, "billing.ledger");
    return this.#deps.store.list(projectId, page);
  }

  /**
   * Money comes from platform administrators alone.
   * @throws DomainError not_found, permission_denied; invalid_request for more than there is to take, or than a balance can hold.
   */
  async credit(caller: UserPrincipal, input: Credit, once: Once<LedgerEntry> = always): Promise<LedgerEntry> {
    const { billing, store, audit, access, projects } = this.#deps;
    if (!caller.platformAdmin) {
      await access.require(caller, input.projectId, "billing.read");
      throw new DomainError("permission_denied", "Credits are given by platform administrators.");
    }
    const name = await projects.nameOf(input.projectId);
    const account = await billing.account(input.projectId);
    refuseImpossible(input.amount, account);
    let committed = (): void => undefined;
    const entry = await store.transaction((_, transaction) =>
      once(transaction, async () => {
        const kind = input.amount < 0 ? "adjust" : "credit";
        const change = await billing.change(transaction, { ...input, kind, account });
        committed = change.committed;
        await audit.record(transaction, {
          actor: caller,
          action: "billing.credit",
          projectId: input.projectId,
          resource: { type: "project", id: input.projectId, name },
          detail: { amountNanoDollars: input.amount, note: input.note },
        });
        return change.entry;
      }),
    );
    committed();
    return entry;
  }
}

function refuseImpossible(amount: number, { balance, held }: Account): void {
  const refuse = (message: string): never => {
    throw new DomainError("invalid_request", `\`amountNanoDollars\`: ${message}`, { param: "amountNanoDollars" });
  };
  if (balance + amount < 0) refuse(`only ${formatDollars(balance)} is left to take.`);
  if (balance + held + amount > MAX_NANO_DOLLARS) refuse(`a balance holds at most ${formatDollars(MAX_NANO_DOLLARS)}.`);
}
