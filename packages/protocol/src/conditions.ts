import { z } from "zod";
import { anyText } from "./values/text.ts";

/** What a daemon says of its machine, beside its workloads. */

/** A newer daemon may know more types: servers keep and show what they do not know. */
export const CONDITION_TYPES = [
  "disk",
  "clock",
  "docker",
  "gpu",
  "memory",
  "network",
  "platform",
  "secrets",
  "update",
] as const;
export type ConditionType = (typeof CONDITION_TYPES)[number];

export const MAX_CONDITION_MESSAGE = 1024;

export const conditionSchema = z
  .object({
    type: anyText(64),
    /** A state that a newer daemon knows is `unknown` to an older server. */
    status: z.enum(["ok", "warning", "problem", "unknown"]).catch("unknown"),
    /** One word for programs, such as `disk_pressure`; "" while it is ok. */
    reason: anyText(64),
    /** For people. */
    message: anyText(MAX_CONDITION_MESSAGE),
    /** RFC 3339: when it came to this status and reason. */
    since: anyText(64),
  })
  .meta({ id: "Condition" });
export type Condition = z.infer<typeof conditionSchema>;
