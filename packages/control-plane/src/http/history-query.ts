import { z } from "zod";
import { moment } from "./fields.ts";
import { pageQuery } from "./pagination.ts";

/** What a list of events may be asked for. */
export const historyQuery = (examples: string) => ({
  kind: z
    .string()
    .regex(/^[a-z_]{1,64}(,[a-z_]{1,64}){0,31}$/, "must be kinds of events, with commas between them")
    .transform((kinds) => kinds.split(","))
    .optional()
    .describe(`Events of these kinds alone, with commas between them, such as \`${examples}\`.`),
  since: moment("Events at or after this time (RFC 3339)."),
  ...pageQuery,
});
