import type { ModelAlias } from "@fairlead/protocol/providers";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import { z } from "zod";
import type { AuditResource } from "../../../access/audit/audit.ts";
import { modelNameSchema, splitModelName } from "../../names/model-name.ts";

/** A project's name for an ordered list of models. Pure. */

const MAX_TARGETS = 16;

export const targetsSchema = z
  .array(modelNameSchema.refine((text) => splitModelName(text) !== null, "must have the form <provider>/<model>"))
  .min(1)
  .max(MAX_TARGETS)
  .refine((targets) => new Set(targets).size === targets.length, "contains the same model twice")
  .describe("`<provider>/<model>`, in order of preference. If a model cannot respond, the next one is called.");

export interface AliasRecord {
  readonly projectId: string;
  readonly name: string;
  readonly targets: readonly string[];
  readonly createdAt: number;
  readonly updatedAt: number;
}

export function toModelAlias({ targets, createdAt, updatedAt, ...alias }: AliasRecord): ModelAlias {
  return { ...alias, targets: [...targets], createdAt: rfc3339(createdAt), updatedAt: rfc3339(updatedAt) };
}

export function aliasResource(name: string): AuditResource {
  return { type: "alias", id: name };
}
