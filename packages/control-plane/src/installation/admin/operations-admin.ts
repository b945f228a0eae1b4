import { type Clock, rfc3339 } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import { z } from "zod";
import { OPERATOR } from "../../access/audit/audit.ts";
import type { AuditService } from "../../access/audit/audit-service.ts";
import { type StoreSnapshot, takeSnapshot } from "../backup/snapshot.ts";
import type { StoreLocation } from "../db/open.ts";
import type { Database } from "../db/tables/schema.ts";
import { LOG_LEVELS } from "../process/log.ts";
import type { LogLevelSwitch } from "../process/log-level.ts";

/** What only the running server can do for its operator. */

const MAX_SECONDS = 7 * 24 * 3600;

export const logLevelSchema = z.strictObject({
  level: z.enum(LOG_LEVELS),
  seconds: z.number().int().min(1).max(MAX_SECONDS).nullable(),
});
export const logLevelAnswerSchema = z.object({
  level: z.enum(LOG_LEVELS),
  /** What counts again at `until`, or at the next start. */
  configured: z.string(),
  until: z.string().nullable(),
});
export type LogLevelInput = z.input<typeof logLevelSchema>;
export type LogLevelAnswer = z.infer<typeof logLevelAnswerSchema>;

export interface OperationsAdminDeps {
  readonly dataDir: string;
  readonly location: StoreLocation;
  readonly installationId: string;
  readonly db: Kysely<Database>;
  readonly audit: AuditService;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly logLevel: LogLevelSwitch;
}

export class OperationsAdmin {
  readonly #deps: OperationsAdminDeps;

  constructor(deps: OperationsAdminDeps) {
    this.#deps = deps;
  }

  /** A copy of the store for a backup; the caller packs and removes it. @throws StartError */
  async snapshot(): Promise<StoreSnapshot> {
    const { db, audit, installationId: id } = this.#deps;
    const resource = { type: "installation", id } as const;
    await audit.record(db, { actor: OPERATOR, action: "admin.backup", projectId: null, resource });
    return takeSnapshot(this.#deps);
  }

  /** @param input parsed by `logLevelSchema`. */
  async setLogLevel({ level, seconds }: z.output<typeof logLevelSchema>): Promise<LogLevelAnswer> {
    const { db, audit, clock, logLevel, installationId: id } = this.#deps;
    const resource = { type: "installation", id } as const;
    const detail = { level, seconds };
    await audit.record(db, { actor: OPERATOR, action: "admin.log_level", projectId: null, resource, detail });
    logLevel.set(level, seconds);
    const until = seconds === null ? null : rfc3339(clock.now() + seconds * 1000);
    return { level, configured: logLevel.configured, until };
  }
}
