import { z } from "zod";

/** What a user is. Pure. */

export interface UserRecord {
  readonly id: string;
  /** Lower case; unique. */
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
  .pipe(z.email("must be an e-mail address"));

/** One place where somebody is signed in: a browser, or a program that they let in. */
export interface SignInSession {
  readonly id: string;
  readonly userId: string;
  /** Unix milliseconds, like `expiresAt`. */
  readonly createdAt: number;
  readonly expiresAt: number;
  /** The browser's `User-Agent`, or the name of the program; null where neither is known. */
  readonly userAgent: string | null;
  /** IP address at the sign-in; null where it is not known. */
  readonly address: string | null;
}
