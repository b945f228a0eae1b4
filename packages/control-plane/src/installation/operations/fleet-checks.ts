import { conditionSchema } from "@fairlead/protocol/conditions";
import type { NodeStatus } from "@fairlead/protocol/resources";
import { parseJson } from "@fairlead/protocol/values/parse-json";
import type { Kysely } from "kysely";
import { z } from "zod";
import { readMasterKey } from "../../access/auth/sealing/master-key.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/tables/schema.ts";
import { countSealed } from "../master-key/rotate-master-key.ts";
import { type DoctorFinding, fail, ok, skipped, warn } from "./finding.ts";

/** Doctor checks of nodes and secrets in the store. */

/** Maximum number named; the message mentions the command that lists all. */
const MAX_NAMED = 5;
const AWAY: readonly NodeStatus[] = ["unreachable", "failed"];

interface NodeRow {
  readonly identifier: string;
  readonly status: string;
  readonly status_message: string;
  readonly conditions: string;
}

/** @param runs without a running server, statuses are outdated. */
export async function checkNodes(db: Kysely<Database>, runs: boolean): Promise<readonly DoctorFinding[]> {
  if (!runs) return [skipped("nodes", "known once the server is running")];
  const nodes = await db
    .selectFrom("node")
    .select(["identifier", "status", "status_message", "conditions"])
    .orderBy("id")
    .execute();
  return [checkAway(nodes), checkCondition(nodes, "disk"), checkCondition(nodes, "clock")];
}

function checkAway(nodes: readonly NodeRow[]): DoctorFinding {
  const check = "nodes";
  const away = nodes.filter(({ status }) => (AWAY as readonly string[]).includes(status));
  if (away.length === 0) return ok(check, nodes.length === 0 ? "none" : `${counted(nodes.length)}, all reachable`);
  const named = away.map(({ identifier, status, status_message: why }) => `${identifier} is ${status} (${why})`);
  return warn(
    check,
    `${away.length} of ${counted(nodes.length)} unavailable: ${listed(named)}; see fairlead node list`,
  );
}

const counted = (nodes: number): string => `${nodes} ${nodes === 1 ? "node" : "nodes"}`;

/** From each node's last report. */
function checkCondition(nodes: readonly NodeRow[], type: "disk" | "clock"): DoctorFinding {
  const check = `${type}s of nodes`;
  const wrong = nodes.flatMap(({ identifier, conditions }) =>
    z
      .array(conditionSchema)
      .parse(parseJson(conditions))
      .filter(
        (condition) => condition.type === type && (condition.status === "warning" || condition.status === "problem"),
      )
      .map(({ message }) => `${identifier}: ${message}`),
  );
  return wrong.length === 0 ? ok(check, "no node reports a problem") : warn(check, listed(wrong));
}

/** Whether the master key matches all sealed values, by key id only. */
export async function checkSecrets({ masterKeyFile }: Config, db: Kysely<Database>): Promise<DoctorFinding> {
  const check = "secrets";
  const { total, foreign } = await countSealed(db, readMasterKey(masterKeyFile).id);
  const lost = foreign.map(({ place, count }) => `${count} in ${place}`);
  if (lost.length === 0) return ok(check, `all ${total} sealed values can be opened with this master key`);
  return fail(check, `sealed with another master key: ${lost.join(", ")}; restore that key, or set the values again`);
}

export function listed(items: readonly string[]): string {
  const more = items.length - MAX_NAMED;
  return items.slice(0, MAX_NAMED).join("; ") + (more > 0 ? `; and ${more} more` : "");
}
