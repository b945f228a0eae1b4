import { z } from "zod";
import { moment } from "./fields.ts";
import { pageQuery } from "./pagination.ts";

/** Query parameters of event lists. */
export const historyQuery = (examples: string) => ({
  kind: z
    .string()
    .regex(/^[a-z_]{1,64}(,[a-z_]{1,64}){0,31}$/, "must be a comma-separated list of event kinds")
    .transform((kinds) => kinds.split(","))
    .optional()
    .describe(`Only events of these kinds, separated by commas, such as \`${examples}\`.`),
  since: moment("Events at or after this time (RFC 3339)."),
  ...pageQuery,
});
