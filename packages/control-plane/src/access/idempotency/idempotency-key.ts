import { z } from "zod";

const keySchema = z
  .string()
  .regex(/^[\x20-\x7e]{1,255}$/, "must be 1 to 255 printable ASCII characters")
  .optional()
  .describe(
    "A unique string of your choice for each new call. Within 24 hours, a retry with the same key returns the response of the first call.",
  );

/** Headers of a create. Other headers pass, because proxies add their own. */
export const idempotencyHeaders = z.looseObject({ "idempotency-key": keySchema });

/** `true` on a response stored by an earlier call. */
export const REPLAYED_HEADER = "idempotency-replayed";
