import { z } from "zod";

/**
 * A text that a daemon passes on from programs which may print anything. PostgreSQL cannot hold a NUL, and a report must not be lost
 * for one, so it is replaced.
 */
export const anyText = (): z.ZodString => z.string().overwrite((text) => text.replaceAll("\0", "\ufffd"));

/** For `.regex(...ONE_LINE)`. PostgreSQL cannot hold a NUL, terminals should not get the rest, and no store gives half a character back. */
export const ONE_LINE = [/^[^\p{Cc}\p{Cs}]*$/u, "must not hold control characters or halves of characters"] as const;

/** What people call things: one line of 1–80 characters. */
export const nameSchema = z
  .string()
  .trim()
  .min(1, "must not be empty")
  .max(80, "must have at most 80 characters")
  .regex(...ONE_LINE);
