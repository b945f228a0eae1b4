import { z } from "zod";

/** A secret's name becomes a file's name on the node: no slash, no leading dot. */
export const secretNameSchema = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,127}$/, "must be 1 to 128 of A-Z a-z 0-9 _ . - and start with a letter or _");

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
  readonly sealedBy: SealedBy;
  readonly sealed: string;
  readonly updatedAt: number;
}
