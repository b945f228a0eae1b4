import { isDeepStrictEqual } from "node:util";
import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
import type { SecretService } from "../secrets/secret-service.ts";
import type { NodeRecord } from "./node.ts";
import type { NodeStores } from "./node-stores.ts";
import { planWorkloads } from "./plan-desired.ts";

export interface Replanning {
  /** Inside the transaction that holds the node's row. */
  readonly stores: NodeStores;
  readonly transaction: Kysely<Database>;
  readonly secrets: Pick<SecretService, "held">;
}

/** Brings the desired state up to the node's config and secrets: a new generation where that changes anything. @returns whether it did. */
export async function replan({ stores, transaction, secrets }: Replanning, node: NodeRecord): Promise<boolean> {
  const held = await secrets.held(transaction, node.id);
  const planned = planWorkloads(node.id, node.engineConfig, { held, restarts: node.restarts });
  const current = await stores.reports.desired(node.id);
  // As it would be read back: absent members and undefined ones are the same.
  if (isDeepStrictEqual(current?.workloads, JSON.parse(JSON.stringify(planned)))) return false;
  await stores.reports.setDesired(node.id, planned);
  return true;
}
