import { createHash } from "node:crypto";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import { lastingPart } from "./plan-secrets.ts";

/** Adds the spec's hash. For secrets it covers only what a running container cannot reload. Pure: independent of the config's key order. */
export function withSpecHash(spec: Omit<WorkloadSpec, "specHash">): WorkloadSpec {
  const { secrets = [], ...rest } = spec;
  const lasting = lastingPart(secrets);
  const hashed = lasting.length === 0 ? rest : { ...rest, secrets: lasting };
  return { ...rest, ...(secrets.length === 0 ? {} : { secrets }), specHash: hashOf(hashed) };
}

/** SHA-256 of JSON with sorted keys. */
function hashOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value, sortKeys)).digest("hex");
}

function sortKeys(_key: string, value: unknown): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
