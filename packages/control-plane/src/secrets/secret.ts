import { z } from "zod";

const MAX_SECRET_BYTES = 65_536;

/** Exact bytes count, newlines too. */
export const secretValueSchema = z
  .string()
  .min(1)
  .refine((value) => Buffer.byteLength(value) <= MAX_SECRET_BYTES, {
    message: `must be at most ${MAX_SECRET_BYTES} bytes`,
  });

/** Where an engine's own programs look for a provider's key: `openai` → `OPENAI_API_KEY`. */
export function providerKeyName(provider: string): string {
  return `${provider.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_")}_API_KEY`;
}

export type SealedBy = "master" | "node";

export interface NodeSecretRecord {
  readonly nodeId: string;
  readonly name: string;
  /** Counts from 1; never used twice, not even after the secret was deleted. */
  readonly version: number;
  readonly sealedBy: SealedBy;
  readonly sealed: string;
  /** The node's public sealing key that a JWE is for; null for an envelope by the master key. */
  readonly sealedTo: string | null;
  /** The node's engine gets it without its config naming it. */
  readonly providerKey: boolean;
  /** Unix milliseconds. */
  readonly updatedAt: number;
}

/**
 * Names the value for daemons. A restored store counts on from an older version, so the number alone could name another
 * value than the one that a daemon holds.
 */
export function versionName({ version, updatedAt }: Pick<NodeSecretRecord, "version" | "updatedAt">): string {
  return `${version}.${updatedAt.toString(36)}`;
}

/** What a secret is sealed under by the master key. */
export function secretContext({ nodeId, name }: Pick<NodeSecretRecord, "nodeId" | "name">): string {
  return `node secret ${nodeId} ${name}`;
}
