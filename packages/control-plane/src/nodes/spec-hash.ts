import { createHash } from "node:crypto";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import { lastingPart } from "./plan-secrets.ts";

/**
 * A whole spec with its hash. Of its secrets, the hash covers what a running container cannot take up. Pure: the same spec gives
 * the same hash, in whatever order a person wrote the config.
 */
export function withSpecHash(spec: Omit<WorkloadSpec, "specHash">): WorkloadSpec {
  const { secrets = [], ...rest } = spec;
  const lasting = lastingPart(secrets);
  const hashed = lasting.length === 0 ? rest : { ...rest, secrets: lasting };
  return { ...rest, ...(secrets.length === 0 ? {} : { secrets }), specHash: hashOf(hashed) };
}

/** SHA-256 over JSON with sorted keys. */
function hashOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value, sortKeys)).digest("hex");
}

function sortKeys(_key: string, value: unknown): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
