import type { AgentSecret } from "@fairlead/protocol/agents";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import { z } from "zod";
import type { SealedColumn } from "../../access/auth/sealing/sealed-column.ts";
import type { OwnedSecretName, SecretOwnerKind } from "./secret-key.ts";

const MAX_SECRET_BYTES = 65_536;

/** Exact bytes count, newlines too. */
export const secretValueSchema = z
  .string()
  .min(1)
  .refine((value) => Buffer.byteLength(value) <= MAX_SECRET_BYTES, {
    message: `must be at most ${MAX_SECRET_BYTES} bytes`,
  });

export const secretBodySchema = z
  .strictObject({ value: secretValueSchema })
  .meta({ examples: [{ value: "<SECRET_VALUE>" }] });

/** Where an engine's own programs look for a provider's key: `openai` → `OPENAI_API_KEY`. */
export function providerKeyName(provider: string): string {
  return `${provider.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_")}_API_KEY`;
}

export type SealedBy = "master" | "node";

export interface SecretRecord extends OwnedSecretName {
  /** Counts from 1; never used twice, not even after the secret was deleted. */
  readonly version: number;
  readonly sealedBy: SealedBy;
  readonly sealed: string;
  /** The node's public sealing key that a JWE is for; null for an envelope by the master key. */
  readonly sealedTo: string | null;
  /** A node's engine gets it without its config naming it. */
  readonly providerKey: boolean;
  /** Unix milliseconds. */
  readonly updatedAt: number;
}

/** A secret as people may see it; times are Unix milliseconds. */
export interface SecretFacts {
  readonly name: string;
  readonly version: number;
  readonly updatedAt: number;
  /** Sealed to a key that its node does not have. */
  readonly stale: boolean;
}

export function toSecret({ name, version, updatedAt, stale }: SecretFacts): AgentSecret {
  return { name, version, updatedAt: rfc3339(updatedAt), stale };
}

/**
 * Names the value for daemons. A restored store counts on from an older version, so the number alone could name another
 * value than the one that a daemon holds.
 */
export function versionName({ version, updatedAt }: Pick<SecretRecord, "version" | "updatedAt">): string {
  return `${version}.${updatedAt.toString(36)}`;
}

/** What a secret is sealed under by the master key. */
export function secretContext(kind: SecretOwnerKind, { ownerId, name }: OwnedSecretName): string {
  return `${kind} secret ${ownerId} ${name}`;
}

/** What the master key seals in this room. */
export const SEALED_SECRETS: readonly SealedColumn[] = (["node", "agent"] as const).map((kind) => ({
  table: `${kind}_secret`,
  column: "sealed",
  key: ["owner_id", "name"],
  also: [],
  contextOf: ({ owner_id: ownerId = "", name = "" }) => secretContext(kind, { ownerId, name }),
}));
