import { ONE_LINE } from "@fairlead/protocol/values/text";
import { z } from "zod";

/** Fields that many routes share. */

const MAX_REFERENCE = 256;

/** An id or a slug, as a caller sends it: whatever its form, it is looked up, so it must be a text that a store can hold. */
export const reference = (description: string): z.ZodString =>
  z
    .string()
    .max(MAX_REFERENCE, `must have at most ${MAX_REFERENCE} characters`)
    .regex(...ONE_LINE)
    .describe(description);

/** A bound of a time span in a query: RFC 3339 in, Unix milliseconds out. */
export const moment = (description: string): z.ZodType<number | undefined> =>
  z.iso
    .datetime({ offset: true, error: "must be an RFC 3339 time" })
    .transform((text) => Date.parse(text))
    .optional()
    .describe(description);
