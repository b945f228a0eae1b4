import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
import type { NodeRecord } from "./node.ts";
import type { CreateNode } from "./node-service.ts";

/** What nodes ask of the room that rents machines for them; a `byo` node has none there. */

export type OrderingNode = Pick<NodeRecord, "id" | "projectId" | "identifier">;

/** Judged, and not ordered yet. */
export interface MachineOrder {
  readonly message: string;
  /** In the node's own transaction: both are there, or neither. */
  place(transaction: Kysely<Database>, node: OrderingNode): Promise<void>;
}

/** A provider token that was found good. */
export interface CheckedToken {
  store(transaction: Kysely<Database>): Promise<void>;
}

export interface NodeMachines {
  /** Asks the provider what it thinks of the token. @throws DomainError invalid_request, provider_token_…, unavailable */
  prepare(input: Pick<CreateNode, "planId" | "location" | "providerToken">): Promise<MachineOrder>;
  /** @throws DomainError as `prepare`; invalid_request for a node without a rented machine */
  checkToken(nodeId: string, providerToken: string): Promise<CheckedToken>;
  /** The node goes: its machine is to go first. @returns false where there is none to wait for. */
  release(transaction: Kysely<Database>, nodeId: string): Promise<boolean>;
}
