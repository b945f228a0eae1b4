import { join } from "node:path";
import { z } from "zod";
import { DurableRecord } from "../state/durable-record.ts";
import type { FileLayer } from "../state/files.ts";

/** Persistent update state. */

const trialSchema = z.object({
  from: z.string(),
  to: z.string(),
  request: z.string(),
  /** What worked before the update; the new version need not do more. */
  before: z.object({ link: z.boolean(), engine: z.boolean() }),
  /** Why the new version failed, or null. */
  failed: z.string().nullable(),
});
export type Trial = z.infer<typeof trialSchema>;

const endedSchema = z.object({
  wanted: z.string(),
  request: z.string(),
  state: z.enum(["done", "rolled_back", "refused"]),
  message: z.string(),
  /** RFC 3339. */
  since: z.string(),
});
/** How an update ended. */
export type EndedUpdate = z.infer<typeof endedSchema>;

export const updateRecordSchema = z.object({
  trial: trialSchema.nullable(),
  last: endedSchema.nullable(),
});
export type UpdateRecord = z.infer<typeof updateRecordSchema>;

export const NO_UPDATES: UpdateRecord = { trial: null, last: null };

export function updateRecordIn(files: FileLayer, stateDir: string): DurableRecord<UpdateRecord> {
  return new DurableRecord(files, join(stateDir, "update.json"), updateRecordSchema);
}
