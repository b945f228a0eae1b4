import type { EngineConfig } from "@fairlead/protocol/engine-config";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { ProjectAccess } from "../../access/auth/access.ts";
import type { Principal, UserPrincipal } from "../../access/auth/principal.ts";
import { always, type Once } from "../../access/idempotency/once.ts";
import type { HistoryQuery } from "../../installation/db/history-query.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { MachineOrder, NodeMachines } from "./actions/node-machines.ts";
import { planWorkloads } from "./desired/plan-desired.ts";
import { freeIdentifier, identifierFrom, NEW_NODE, type NodeRecord, nodeResource, PLAN_BYO } from "./node.ts";
import type { NodeEventRecord } from "./records/node-event-store.ts";
import type { NodeStores } from "./records/node-stores.ts";

export interface CreateNode {
  readonly projectId: string;
  readonly planId: string;
  readonly name: string;
  readonly location?: string | undefined;
  readonly providerToken?: string | undefined;
  readonly directSecrets: boolean;
  readonly engineConfig: EngineConfig | null;
}

/** Identifiers share a namespace with the project's providers and aliases. */
export interface TakenNames {
  /** @param transaction with the project's row locked, so that free names stay free. */
  taken(transaction: Kysely<Database>, projectId: string): Promise<ReadonlySet<string>>;
}

interface Insertion {
  readonly caller: UserPrincipal;
  readonly input: CreateNode;
  readonly taken: ReadonlySet<string>;
  /** Null: the user's own machine. */
  readonly order: MachineOrder | null;
}

interface StorePage {
  readonly limit: number;
  readonly after: string | null;
}

export interface NodeServiceDeps {
  readonly stores: NodeStores;
  readonly names: TakenNames;
  readonly machines: Pick<NodeMachines, "prepare">;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly clock: Clock;
  readonly ids: IdSource;
}

const WAITS_FOR_TOKEN = "Waiting for a bootstrap token. Issue one and install the daemon on your machine with it.";

/** Create, get and list nodes. */
export class NodeService {
  readonly #deps: NodeServiceDeps;

  constructor(deps: NodeServiceDeps) {
    this.#deps = deps;
  }

  /** Permission check of `create`. @throws DomainError not_found, permission_denied */
  async requireCreate(caller: UserPrincipal, projectId: string): Promise<void> {
    await this.#deps.access.require(caller, projectId, "node.create");
  }

  /** Also orders a machine if one is rented. @throws DomainError not_found, permission_denied, invalid_request, provider_token_… */
  async create(caller: UserPrincipal, input: CreateNode, once: Once<NodeRecord> = always): Promise<NodeRecord> {
    await this.requireCreate(caller, input.projectId);
    if (input.planId === PLAN_BYO) refuseProviderToken(input);
    const order = input.planId === PLAN_BYO ? null : await this.#deps.machines.prepare(input);
    return this.#deps.stores.transaction(async (stores, transaction) => {
      const { projectId } = input;
      await this.#deps.access.requireWithin(transaction, { caller, projectId, operation: "node.create" });
      return once(transaction, async () => {
        const taken = await this.#deps.names.taken(transaction, projectId);
        const node = await this.#insert(stores, { caller, input, taken, order });
        await order?.place(transaction, node);
        await this.#recordCreation(transaction, caller, node);
        return node;
      });
    });
  }

  /** For members of its project and the node itself. @throws DomainError not_found */
  async get(caller: Principal, id: string): Promise<NodeRecord> {
    const node = await this.#deps.stores.nodes.find(id);
    if (!node) throw nodeNotFound();
    await this.#requireSight(caller, node);
    return node;
  }

  /** @throws DomainError not_found */
  async list(caller: UserPrincipal, projectId: string, page: StorePage): Promise<NodeRecord[]> {
    await this.#deps.access.require(caller, projectId, "node.read");
    return this.#deps.stores.nodes.list(projectId, page);
  }

  /** @throws DomainError not_found */
  async getByIdentifier(caller: Principal, projectId: string, identifier: string): Promise<NodeRecord> {
    const node = await this.#deps.stores.nodes.findByIdentifier(projectId, identifier);
    if (!node) throw nodeNotFound();
    await this.#requireSight(caller, node);
    return node;
  }

  /** Number of `active` nodes in one project, or in all of the caller's. */
  async countActive(caller: UserPrincipal, projectId: string | null): Promise<number> {
    const { access, stores } = this.#deps;
    if (projectId === null) return stores.nodes.countActive(await access.projectsOf(caller, "node.read"));
    await access.require(caller, projectId, "node.read");
    return stores.nodes.countActive([projectId]);
  }

  /** Events, newest first. */
  async events(caller: UserPrincipal, id: string, query: HistoryQuery): Promise<NodeEventRecord[]> {
    const node = await this.get(caller, id);
    return this.#deps.stores.events.list(node.id, query);
  }

  async #insert(stores: NodeStores, { caller, input, taken, order }: Insertion): Promise<NodeRecord> {
    const identifier = freeIdentifier(identifierFrom(input.name), taken);
    const statusMessage = order?.message ?? WAITS_FOR_TOKEN;
    const node = { ...this.#newRecord(caller, input, identifier), statusMessage };
    await stores.nodes.insert(node);
    await stores.reports.setDesired(node.id, planWorkloads(node.id, node.engineConfig));
    await stores.events.append([
      {
        id: this.#deps.ids.next("event"),
        nodeId: node.id,
        at: node.createdAt,
        kind: "created",
        status: node.status,
        message: node.statusMessage,
      },
    ]);
    return node;
  }

  async #recordCreation(transaction: Kysely<Database>, actor: UserPrincipal, node: NodeRecord): Promise<void> {
    await this.#deps.audit.record(transaction, {
      actor,
      action: "node.create",
      projectId: node.projectId,
      resource: nodeResource(node),
      detail: { planId: node.planId, identifier: node.identifier, directSecrets: node.directSecrets },
    });
  }

  #newRecord(caller: UserPrincipal, input: CreateNode, identifier: string): NodeRecord {
    const now = this.#deps.clock.now();
    return {
      ...NEW_NODE,
      id: this.#deps.ids.next("node"),
      projectId: input.projectId,
      userId: caller.userId,
      name: input.name,
      identifier,
      planId: input.planId,
      status: "provisioning",
      statusMessage: WAITS_FOR_TOKEN,
      statusSince: now,
      directSecrets: input.directSecrets,
      engineConfig: input.engineConfig,
      createdAt: now,
    };
  }

  /** The error text must not reveal to strangers that the node exists. */
  async #requireSight(caller: Principal, node: NodeRecord): Promise<void> {
    if (caller.kind === "node") {
      if (caller.nodeId !== node.id) throw nodeNotFound();
      return;
    }
    try {
      await this.#deps.access.require(caller, node.projectId, "node.read");
    } catch (error) {
      throw error instanceof DomainError && error.code === "not_found" ? nodeNotFound() : error;
    }
  }
}

export function nodeNotFound(): DomainError {
  return new DomainError("not_found", "There is no such node in your projects.");
}

/** `byo` ignores `location` and rejects `providerToken`. */
function refuseProviderToken(input: CreateNode): void {
  if (input.providerToken === undefined) return;
  throw new DomainError("invalid_request", 'The plan "byo" does not use a provider credential. Omit `providerToken`.', {
    param: "providerToken",
  });
}
