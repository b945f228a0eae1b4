import { ONE_LINE } from "@fairlead/protocol/values/text";
import { z } from "zod";

/** Model names: `<provider>/<model>`, and the syntax of each part. Pure. */

/** Also the syntax of node identifiers, which share the namespace. */
export const providerNameSchema = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/, "must be 1 to 40 of a-z, 0-9 and -, and must not start or end with -");

const MAX_MODEL_LENGTH = 256;

/** The upstream's name for a model, which may contain slashes. */
export const upstreamModelSchema = z
  .string()
  .min(1, "must not be empty")
  .max(MAX_MODEL_LENGTH, `must have at most ${MAX_MODEL_LENGTH} characters`)
  .regex(...ONE_LINE)
  .refine((text) => text.trim() === text, "must not start or end with a space");

/** As callers name it: a model of a provider, or an alias. */
export const modelNameSchema = upstreamModelSchema.max(MAX_MODEL_LENGTH + 41);

/** All nodes of the project that serve the model: `nodes/<model>`. */
export const NODES_GROUP = "nodes";

export interface SplitName {
  readonly provider: string;
  readonly model: string;
}

/** Splits at the first `/`; the rest may contain more. @returns null without a provider or a model. */
export function splitModelName(name: string): SplitName | null {
  const slash = name.indexOf("/");
  if (slash < 1 || slash === name.length - 1) return null;
  return { provider: name.slice(0, slash), model: name.slice(slash + 1) };
}
