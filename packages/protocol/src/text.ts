import { z } from "zod";

/**
 * A text that a daemon passes on from programs which may print anything. PostgreSQL cannot hold a NUL, and a report must not be lost
 * for one, so it is replaced.
 */
export const anyText = (): z.ZodString => z.string().overwrite((text) => text.replaceAll("\0", "\ufffd"));
