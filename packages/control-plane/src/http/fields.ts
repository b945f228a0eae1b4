import { ONE_LINE } from "@fairlead/protocol/text";
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
