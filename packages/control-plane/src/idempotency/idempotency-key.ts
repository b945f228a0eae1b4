import { z } from "zod";

const keySchema = z
  .string()
  .regex(/^[\x20-\x7e]{1,255}$/, "must be 1 to 255 printable ASCII characters")
  .optional()
  .describe(
    "Any text of your choice, new for every new call. A repeat within 24 hours answers what the first call answered.",
  );

/** The headers of a create (design §4). Everything else passes: proxies add what they like. */
export const idempotencyHeaders = z.looseObject({ "idempotency-key": keySchema });

/** Set to `true` on an answer that was kept from an earlier call. */
export const REPLAYED_HEADER = "idempotency-replayed";
