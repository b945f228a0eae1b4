import type { Clock } from "@fairlead/protocol/clock";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
import type { EnrollmentService, FreshToken } from "./enrollment-service.ts";
import type { NodeRecord } from "./node.ts";
import type { NodeChanges } from "./node-changes.ts";
import type { NodeStatusEvent } from "./node-status.ts";
import type { NodeStatusService } from "./node-status-service.ts";
import type { NodeStores } from "./node-stores.ts";

export interface NodeMachineDeps {
  readonly stores: NodeStores;
  readonly status: NodeStatusService;
  readonly enrollment: EnrollmentService;
  readonly changes: NodeChanges;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** A node whose row is held until the end of a transaction, as its machine changes it. */
export interface HeldNode {
  readonly record: NodeRecord;
  /** Enters a status where the event means one now, else says the same as an event alone. @param reason one sentence, for people. */
  apply(event: NodeStatusEvent, reason: string): Promise<void>;
  /** An event, and its status message unless it has failed: the reason for that stays. */
  tell(kind: string, message: string): Promise<void>;
  setPublicIp(ip: string): Promise<void>;
  keepToken(fresh: FreshToken): Promise<void>;
  /** The last of it: nothing else is left of the node's machine. */
  forget(): Promise<void>;
}

/** What the room of machines may do with the nodes that they are rented for. */
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

  /** @returns what `work` returned; null where the node is not there any more. */
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
