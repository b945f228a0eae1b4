import { DomainError } from "@fairlead/protocol/errors";
import type { ProjectAccess } from "../../access/auth/access.ts";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import { always, type Once } from "../../access/idempotency/once.ts";
import type { BillingService } from "./billing-service.ts";
import type { BillingStore } from "./billing-store.ts";
import type { Credit, CreditService } from "./credit-service.ts";
import type { BillingMode, LedgerEntry } from "./ledger.ts";

export interface BillingAccessDeps {
  readonly billing: BillingService;
  readonly store: BillingStore;
  readonly access: ProjectAccess;
  readonly credits: CreditService;
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
   * @throws DomainError permission_denied, and those of `CreditService`
   */
  async credit(caller: UserPrincipal, input: Credit, once: Once<LedgerEntry> = always): Promise<LedgerEntry> {
    const { access, credits } = this.#deps;
    if (caller.platformAdmin) return credits.add(caller, input, once);
    await access.require(caller, input.projectId, "billing.read");
    throw new DomainError("permission_denied", "Only platform administrators can add credits.");
  }
}
