import { z } from "zod";

/** Users and sessions. Pure. */

export interface UserRecord {
  readonly id: string;
  /** Lowercase; unique. */
  readonly email: string;
  readonly name: string;
  readonly platformAdmin: boolean;
  readonly createdAt: number;
}

export const emailSchema = z
  .string()
  .trim()
  .toLowerCase()
  .max(254, "must have at most 254 characters")
  .pipe(z.email("must be an email address"));

/** A session: a browser, or an authorized program. */
export interface SignInSession {
  readonly id: string;
  readonly userId: string;
  /** Unix milliseconds, like `expiresAt`. */
  readonly createdAt: number;
  readonly expiresAt: number;
  /** The browser's `User-Agent`, or the program's name; null if unknown. */
  readonly userAgent: string | null;
  /** IP address at the sign-in; null if unknown. */
  readonly address: string | null;
}
