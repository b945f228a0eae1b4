import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { EnrollmentService, FreshToken } from "../enrolment/enrollment-service.ts";
import type { NodeRecord } from "../node.ts";
import type { NodeChangeFeed } from "../node-change-feed.ts";
import type { NodeStatusEvent } from "../observed/node-status.ts";
import type { NodeStatusService } from "../observed/node-status-service.ts";
import type { NodeStores } from "../records/node-stores.ts";

export interface NodeMachineDeps {
  readonly stores: NodeStores;
  readonly status: NodeStatusService;
  readonly enrollment: EnrollmentService;
  readonly changes: NodeChangeFeed;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** A node whose row is locked until the end of a transaction, for changes by its machine. */
export interface HeldNode {
  readonly record: NodeRecord;
  /** Changes the status if the event does so now, else records only an event. @param reason one sentence, shown to users. */
  apply(event: NodeStatusEvent, reason: string): Promise<void>;
  /** Records an event, and the status message unless the node has failed: that reason is kept. */
  tell(kind: string, message: string): Promise<void>;
  setPublicIp(ip: string): Promise<void>;
  keepToken(fresh: FreshToken): Promise<void>;
  /** Deletes the node; call it last. */
  forget(): Promise<void>;
}

/** What the machines' room may do with the nodes it rents for. */
export class NodeMachineService {
  readonly #deps: NodeMachineDeps;

  constructor(deps: NodeMachineDeps) {
    this.#deps = deps;
  }

  newToken(nodeId: string): Promise<FreshToken> {
    return this.#deps.enrollment.newToken(nodeId);
  }

  async find(nodeId: string): Promise<NodeRecord | null> {
    return this.#deps.stores.nodes.find(nodeId);
  }

  /** @returns the result of `work`; null if the node no longer exists. */
  async hold<T>(
    nodeId: string,
    work: (transaction: Kysely<Database>, node: HeldNode) => Promise<T>,
  ): Promise<T | null> {
    const announcements: (() => void)[] = [];
    const result = await this.#deps.stores.transaction(async (stores, transaction) => {
      const record = await stores.nodes.findForUpdate(nodeId);
      return record === null ? null : work(transaction, this.#held({ stores, transaction, record, announcements }));
    });
    for (const announce of announcements) announce();
    return result;
  }

  #held({ stores, transaction, record, announcements }: Holding): HeldNode {
    const { status, enrollment, changes, clock, ids } = this.#deps;
    const { id: nodeId, projectId } = record;
    const tell = async (kind: string, message: string): Promise<void> => {
      if (record.status !== "failed") await stores.nodes.setStatusMessage(nodeId, message);
      await stores.events.append([{ id: ids.next("event"), nodeId, at: clock.now(), kind, status: null, message }]);
      announcements.push(() => changes.emit({ nodeId, projectId, aspect: "status" }));
    };
    return {
      record,
      tell,
      apply: async (event, reason) => {
        const entered = await status.applyWithin(stores, nodeId, { event, reason });
        if (entered === null) await tell(event, reason);
        else announcements.push(() => status.announce(entered));
      },
      setPublicIp: (ip) => stores.nodes.setPublicIp(nodeId, ip),
      keepToken: (fresh) =>
        enrollment.keepToken(
          { stores, transaction },
          { actor: { kind: "system", name: "provisioning" }, node: record, fresh },
        ),
      forget: async () => {
        if (record.signingKey !== null) {
          await stores.deleted.insert({ id: nodeId, signingKey: record.signingKey }, clock.now());
        }
        await stores.nodes.delete(projectId, nodeId);
        announcements.push(() => changes.emit({ nodeId, projectId, aspect: "removed" }));
      },
    };
  }
}

interface Holding {
  readonly stores: NodeStores;
  readonly transaction: Kysely<Database>;
  readonly record: NodeRecord;
  readonly announcements: (() => void)[];
}
