import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import type { Database } from "../../installation/db/tables/schema.ts";
import { type AuditEntry, actorOf, auditDetail, auditText } from "./audit.ts";
import { AuditStore } from "./audit-store.ts";

export interface AuditServiceDeps {
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** Records who did what to which resource, when and from where. Each service writes its own changes. */
export class AuditService {
  readonly #deps: AuditServiceDeps;

  constructor(deps: AuditServiceDeps) {
    this.#deps = deps;
  }

  /** @param transaction the change's own, so that change and record are committed together. */
  async record(transaction: Kysely<Database>, entry: AuditEntry): Promise<void> {
    const { actor, action, projectId, resource, detail = {} } = entry;
    await new AuditStore(transaction).append({
      id: this.#deps.ids.next("auditEvent"),
      at: this.#deps.clock.now(),
      action,
      actor: actorOf(actor),
      projectId,
      resource: { type: resource.type, id: auditText(resource.id), name: auditText(resource.name ?? "") },
      address: actor.origin?.address ?? "",
      requestId: actor.origin?.requestId ?? "",
      detail: auditDetail(detail),
    });
  }
}
