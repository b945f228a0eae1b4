import { ONE_LINE } from "@fairlead/protocol/text";
import { z } from "zod";

/** Names of models: `<provider>/<model>`, and what each part may be. Pure. */

/** What a node's identifier is too: one namespace in a project (design §4). */
export const providerNameSchema = z
  .string()
  .regex(
    /^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/,
    "must be 1 to 40 of a-z, 0-9 and -, with neither the first nor the last a -",
  );

const MAX_MODEL_LENGTH = 256;

/** A model as its upstream calls it; it may hold slashes. */
export const upstreamModelSchema = z
  .string()
  .min(1, "must not be empty")
  .max(MAX_MODEL_LENGTH, `must have at most ${MAX_MODEL_LENGTH} characters`)
  .regex(...ONE_LINE)
  .refine((text) => text.trim() === text, "must not begin or end with a space");

/** As a caller names it: a model of a provider, or an alias. */
export const modelNameSchema = upstreamModelSchema.max(MAX_MODEL_LENGTH + 41);

/** Every node of the project that serves the model: `nodes/<model>`. */
export const NODES_GROUP = "nodes";

export interface SplitName {
  readonly provider: string;
  readonly model: string;
}

/** The first `/` splits; the rest may hold more (design §8). @returns null for a name without a provider or a model. */
export function splitModelName(name: string): SplitName | null {
  const slash = name.indexOf("/");
  if (slash < 1 || slash === name.length - 1) return null;
  return { provider: name.slice(0, slash), model: name.slice(slash + 1) };
}
