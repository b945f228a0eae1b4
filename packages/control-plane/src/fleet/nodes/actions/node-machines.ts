import type { Kysely } from "kysely";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { NodeRecord } from "../node.ts";
import type { CreateNode } from "../node-service.ts";

/** What nodes need of the room that rents machines. `byo` nodes have no rented machine. */

export type OrderingNode = Pick<NodeRecord, "id" | "projectId" | "identifier">;

/** A validated order, not placed yet. */
export interface MachineOrder {
  readonly message: string;
  /** Runs in the node's transaction, so that both are created or neither. */
  place(transaction: Kysely<Database>, node: OrderingNode): Promise<void>;
}

/** A valid provider token. */
export interface CheckedToken {
  store(transaction: Kysely<Database>): Promise<void>;
}

export interface NodeMachines {
  /** Checks the token with the provider. @throws DomainError invalid_request, provider_token_…, unavailable */
  prepare(input: Pick<CreateNode, "planId" | "location" | "providerToken">): Promise<MachineOrder>;
  /** @throws DomainError as `prepare`; invalid_request for a node without a rented machine */
  checkToken(nodeId: string, providerToken: string): Promise<CheckedToken>;
  /** Deletes the node's machine before the node. @returns false if there is none to wait for. */
  release(transaction: Kysely<Database>, nodeId: string): Promise<boolean>;
}
