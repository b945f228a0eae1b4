import type { Kysely } from "kysely";
import type { AuditService } from "../audit/audit-service.ts";
import type { ProjectAccess } from "../auth/access.ts";
import type { Database } from "../db/schema.ts";
import { BillingAccessService } from "./billing-access-service.ts";
import { BillingService, type BillingServiceDeps } from "./billing-service.ts";
import { BillingStore } from "./billing-store.ts";
import { CreditService } from "./credit-service.ts";
import { LedgerCheck } from "./ledger-check.ts";

export interface BillingServices {
  readonly billing: BillingService;
  readonly credits: CreditService;
  readonly billingAccess: BillingAccessService;
  readonly ledgerCheck: LedgerCheck;
}

export interface BillingServicesDeps extends BillingServiceDeps {
  readonly longReads: Kysely<Database>;
  readonly audit: AuditService;
  readonly projects: { readonly access: ProjectAccess; nameOf(projectId: string): Promise<string> };
}

export function createBillingServices(deps: BillingServicesDeps): BillingServices {
  const { audit, projects } = deps;
  const store = new BillingStore(deps.db);
  const billing = new BillingService(deps);
  const credits = new CreditService({ billing, store, audit, projects });
  const billingAccess = new BillingAccessService({ billing, credits, store, access: projects.access, projects });
  return { billing, credits, billingAccess, ledgerCheck: new LedgerCheck(deps.longReads) };
}
