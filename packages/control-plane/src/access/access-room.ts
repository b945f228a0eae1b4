import { randomBytes } from "node:crypto";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { Database } from "../installation/db/tables/schema.ts";
import { keptFor, type Retention } from "../installation/process/retention.ts";
import type { BillingService } from "../money/billing/billing-service.ts";
import { asRoom, type Ground } from "../room.ts";
import { AuditReadService } from "./audit/audit-read-service.ts";
import { registerAuditRoutes } from "./audit/audit-routes.ts";
import { AuditStore } from "./audit/audit-store.ts";
import { registerKeyRoutes } from "./keys/key-routes.ts";
import { KeyService } from "./keys/key-service.ts";
import { KeyStore } from "./keys/key-store.ts";
import { KeyUse } from "./keys/key-use.ts";
import { callLimiter } from "./limits/call-limiter.ts";
import { serverLimits } from "./limits/call-limits.ts";
import { registerLimitRoutes } from "./limits/limit-routes.ts";
import { LimitService } from "./limits/limit-service.ts";
import { LimitStore } from "./limits/limit-store.ts";
import { Limiter } from "./limits/limiter.ts";

interface AccessOptions extends Ground {
  readonly billing: BillingService;
}

export type Access = ReturnType<typeof openAccess>;

/** Keys, call limits and the audit log. */
export function openAccess({ config, log, clock, ids, installation, projects, ...rest }: AccessOptions) {
  const { billing, idempotency } = rest;
  const { db, writes, longReads, audit } = installation;
  const { access } = projects;
  const keyUse = new KeyUse({ keys: new KeyStore(writes), clock, log });
  const keys = new KeyService({ clock, ids, keys: new KeyStore(db), use: keyUse, access, audit, randomBytes });
  const server = serverLimits(config.limits.project);
  const projectLimits = new LimitService({ clock, limits: new LimitStore(db), server, access, audit, projects });
  const limiter = new Limiter(clock);
  const auditLog = new AuditReadService({ longReads, access });
  return asRoom({
    keys,
    limiter,
    callLimiter: callLimiter(limiter, projectLimits),
    routes: (app) => {
      registerKeyRoutes(app, { keys, idempotency, billing, clock });
      registerAuditRoutes(app, auditLog);
      registerLimitRoutes(app, projectLimits);
    },
    retentions: [auditRetention(longReads, config.retention.auditDays, clock)],
    close: () => keyUse.close(),
  });
}

/** @param longReads so that deletions block no other statement. */
export function auditRetention(longReads: Kysely<Database>, days: number, clock: Clock): Retention {
  const events = new AuditStore(longReads);
  return keptFor({ what: "audit events", days, clock, remove: (at, limit) => events.deleteBefore(at, limit) });
}
