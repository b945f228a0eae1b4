import { DomainError } from "@fairlead/protocol/errors";
import type { Node, NodeStatus } from "@fairlead/protocol/resources";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import type { AuditEntry } from "../../../access/audit/audit.ts";
import type { AuditService } from "../../../access/audit/audit-service.ts";
import type { Operation, ProjectAccess } from "../../../access/auth/access.ts";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import { always, type Once } from "../../../access/idempotency/once.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { NodePlanner } from "../desired/node-planner.ts";
import { type NodeRecord, nodeResource } from "../node.ts";
import type { NodeChangeFeed } from "../node-change-feed.ts";
import { type NodeService, nodeNotFound } from "../node-service.ts";
import { NodeViewService } from "../node-view-service.ts";
import type { NodeStatusService } from "../observed/node-status-service.ts";
import type { NodeStores } from "../records/node-stores.ts";
import { drainAsked, type NodeDrainService } from "./node-drain-service.ts";

export interface NodeActionsDeps {
  readonly stores: NodeStores;
  readonly nodes: Pick<NodeService, "get">;
  readonly status: NodeStatusService;
  readonly drain: NodeDrainService;
  readonly changes: NodeChangeFeed;
  readonly planner: NodePlanner;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  /** The requesting user, for the node's history. */
  readonly people: NodePeople;
  readonly clock: Clock;
  readonly ids: IdSource;
}

export interface NodePeople {
  get(userId: string): Promise<{ readonly email: string }>;
}

interface Asked {
  readonly id: string;
  readonly operation: Operation;
}

/** The rows of one transaction, and the requesting user. */
interface Deed {
  readonly stores: NodeStores;
  readonly transaction: Kysely<Database>;
  readonly node: NodeRecord;
  readonly caller: UserPrincipal;
  readonly who: string;
}

/** The result of an operation; `announce` runs after the commit. */
interface Done {
  readonly announce: () => void;
}

const NEVER_ENROLLED: readonly NodeStatus[] = ["provisioning", "bootstrapping", "failed"];
const OUT_OF_SERVICE: readonly NodeStatus[] = ["draining", "drained"];
const NOTHING: Done = { announce: () => undefined };

/** Drains and resumes nodes and restarts their engines at a user's request. All operations are idempotent. */
export class NodeActionsService {
  readonly #deps: NodeActionsDeps;

  constructor(deps: NodeActionsDeps) {
    this.#deps = deps;
  }

  /**
   * Blocks new calls and lets running ones finish, for at most `drainMs`; then the workloads stop. Returns immediately.
   * @throws DomainError not_found, permission_denied, node_not_enrolled
   */
  async drain(caller: UserPrincipal, id: string, drainMs: number): Promise<NodeRecord> {
    const node = await this.#do(caller, { id, operation: "node.drain" }, (deed) => this.#drain(deed, drainMs));
    if (node.status === "draining") this.#deps.drain.watch(id);
    return node;
  }

  /** Also cancels a running drain. @throws DomainError not_found, permission_denied */
  async resume(caller: UserPrincipal, id: string): Promise<NodeRecord> {
    const node = await this.#do(caller, { id, operation: "node.resume" }, (deed) => this.#resume(deed));
    await this.#deps.drain.release(id);
    return node;
  }

  /**
   * Creates a new container with the same config, as in an update.
   * @returns the node right after. @throws DomainError not_found, permission_denied, node_not_enrolled, node_out_of_service, invalid_request
   */
  async restart(caller: UserPrincipal, id: string, once: Once<Node> = always): Promise<Node> {
    // The node's state is checked within `once`, so that a retry returns the first response regardless of later changes.
    const node = await this.#within(caller, { id, operation: "node.restart" }, (deed) =>
      once(deed.transaction, () => this.#restart(deed)),
    );
    this.#deps.changes.emit({ nodeId: id, projectId: node.projectId, aspect: "desired" });
    return node;
  }

  async #do(caller: UserPrincipal, asked: Asked, run: (deed: Deed) => Promise<Done>): Promise<NodeRecord> {
    const { done, node } = await this.#within(caller, asked, async (deed) => {
      const result = await run(deed);
      return { done: result, node: (await deed.stores.nodes.find(asked.id)) ?? deed.node };
    });
    done.announce();
    return node;
  }

  /** Checks the permission and runs the operation with the node's row locked. */
  async #within<T>(caller: UserPrincipal, { id, operation }: Asked, run: (deed: Deed) => Promise<T>): Promise<T> {
    const { nodes, access, people } = this.#deps;
    const { projectId } = await nodes.get(caller, id);
    await access.require(caller, projectId, operation);
    const who = (await people.get(caller.userId)).email;
    return this.#deps.stores.transaction(async (stores, transaction) => {
      const node = await stores.nodes.findForUpdate(id);
      if (node === null) throw nodeNotFound();
      return run({ stores, transaction, node, caller, who });
    });
  }

  async #drain(deed: Deed, drainMs: number): Promise<Done> {
    const { stores, node, who } = deed;
    if (NEVER_ENROLLED.includes(node.status)) throw neverEnrolled();
    if (OUT_OF_SERVICE.includes(node.status)) return NOTHING;
    const reason = drainAsked(who, drainMs);
    const announce = await this.#deps.drain.beginWithin(stores, node.id, { reason, drainMs });
    if (announce === null) return NOTHING;
    await this.#record(deed, { action: "node.drain", detail: { timeoutSeconds: drainMs / 1000 } });
    return { announce };
  }

  async #resume(deed: Deed): Promise<Done> {
    const { stores, node, who } = deed;
    const reason = `${who} resumed this node. It becomes active once its workloads are ready.`;
    const entered = await this.#deps.status.applyWithin(stores, node.id, { event: "resume_requested", reason });
    if (entered === null) return NOTHING;
    await this.#record(deed, { action: "node.resume" });
    return { announce: () => this.#deps.status.announce(entered) };
  }

  async #restart(deed: Deed): Promise<Node> {
    const { stores, transaction, node, who } = deed;
    const { planner, clock, ids } = this.#deps;
    if (NEVER_ENROLLED.includes(node.status)) throw neverEnrolled();
    if (OUT_OF_SERVICE.includes(node.status)) throw outOfService(node);
    if (node.engineConfig === null)
      throw new DomainError("invalid_request", "This node has no engine. Set its `engineConfig`.");
    const restarts = node.restarts + 1;
    await stores.nodes.setRestarts(node.id, restarts);
    await planner.replan({ stores, transaction }, { ...node, restarts });
    const message = `${who} restarted the engine.`;
    const event = {
      id: ids.next("event"),
      nodeId: node.id,
      at: clock.now(),
      kind: "restart_requested",
      status: null,
      message,
    };
    await stores.events.append([event]);
    await this.#record(deed, { action: "node.restart" });
    return new NodeViewService(stores).one({ ...node, restarts });
  }

  async #record({ transaction, caller, node }: Deed, entry: Pick<AuditEntry, "action" | "detail">): Promise<void> {
    const { projectId } = node;
    await this.#deps.audit.record(transaction, { ...entry, actor: caller, projectId, resource: nodeResource(node) });
  }
}

function neverEnrolled(): DomainError {
  return new DomainError("node_not_enrolled", "No daemon has enrolled for this node yet, so nothing can run on it.");
}

function outOfService({ status }: NodeRecord): DomainError {
  return new DomainError("node_out_of_service", `This node is ${status}. Resume it first.`);
}
