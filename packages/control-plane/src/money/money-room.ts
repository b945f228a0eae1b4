import type { Clock } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { AuditService } from "../access/audit/audit-service.ts";
import type { ProjectAccess } from "../access/auth/access.ts";
import type { Database } from "../installation/db/tables/schema.ts";
import { keptFor } from "../installation/process/retention.ts";
import { asRoom, type Ground } from "../room.ts";
import { BillingAccessService } from "./billing/billing-access-service.ts";
import { registerBillingRoutes } from "./billing/billing-routes.ts";
import { BillingService, type BillingServiceDeps } from "./billing/billing-service.ts";
import { BillingStore } from "./billing/billing-store.ts";
import { CreditService } from "./billing/credit-service.ts";
import { LedgerCheck } from "./billing/ledger-check.ts";
import { UsageRecorder } from "./usage/usage-recorder.ts";
import { registerUsageRoutes } from "./usage/usage-routes.ts";
import { UsageService } from "./usage/usage-service.ts";
import { UsageStore } from "./usage/usage-store.ts";

export interface BillingOptions extends BillingServiceDeps {
  readonly maintenance: Kysely<Database>;
  readonly audit: AuditService;
  readonly projects: { readonly access: ProjectAccess; nameOf(projectId: string): Promise<string> };
}

/** Used by the offline administrator too. */
export function createBillingServices(options: BillingOptions) {
  const { audit, projects } = options;
  const store = new BillingStore(options.db);
  const billing = new BillingService(options);
  const credits = new CreditService({ billing, store, audit, projects });
  const billingAccess = new BillingAccessService({ billing, credits, store, access: projects.access, projects });
  return { billing, credits, billingAccess, ledgerCheck: new LedgerCheck(options.maintenance) };
}

export type Money = ReturnType<typeof openMoney>;

/** What calls cost and use: checked in memory, written asynchronously. */
export function openMoney({ config, log, clock, ids, bounds, installation, projects, idempotency }: Ground) {
  const { db, longReads, writeTogether } = installation;
  const { access } = projects;
  const parts = { ...installation, clock, ids, log, bounds, projects };
  const billing = createBillingServices({ ...parts, mode: config.billing.mode });
  const usage = new UsageService({ access, clock, usage: new UsageStore(longReads) });
  const usageRecorder = new UsageRecorder({ writeTogether, clock, ids, log, usage: new UsageStore(db) });
  return asRoom({
    ...billing,
    usageRecorder,
    /** Settles the holds left by the last stop. */
    prepare: async () => {
      const calls = await billing.billing.recover();
      if (calls > 0) log.warn({ calls }, "settled calls that were interrupted when the server last stopped");
    },
    routes: (app) => {
      registerBillingRoutes(app, { billingAccess: billing.billingAccess, idempotency });
      registerUsageRoutes(app, usage);
    },
    retentions: usageRetentions({ ...config.retention, longReads, clock }),
    close: async () => {
      try {
        await usageRecorder.close();
      } finally {
        await billing.billing.close();
      }
    },
  });
}

interface UsageRetentionOptions {
  /** So that deletions block no other statement. */
  readonly longReads: Kysely<Database>;
  readonly usageDays: number;
  readonly usageSumsDays: number;
  readonly clock: Clock;
}

export function usageRetentions({ longReads, usageDays, usageSumsDays, clock }: UsageRetentionOptions) {
  const usage = new UsageStore(longReads);
  const records = (at: number, limit: number) => usage.deleteRecordsBefore(at, limit);
  const hours = (at: number, limit: number) => usage.deleteHoursBefore(at, limit);
  return [
    keptFor({ what: "usage records", days: usageDays, clock, remove: records }),
    keptFor({ what: "usage sums", days: usageSumsDays, clock, remove: hours }),
  ] as const;
}
