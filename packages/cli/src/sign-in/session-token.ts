import { z } from "zod";
import { UsageError } from "../cli-error.ts";

/** A session token (JWT) from `fairlead admin token`. Only the platform verifies the signature. */
export interface SessionToken {
  readonly token: string;
  readonly sessionId: string;
  /** Unix milliseconds. */
  readonly expiresAt: number;
}

const claimsSchema = z.object({ sid: z.string().min(1), exp: z.number() });

/** @throws UsageError if the text is not a session token; the message does not contain it. */
export function readSessionToken(text: string): SessionToken {
  const token = text.trim();
  const claims = claimsSchema.safeParse(decodeClaims(token));
  if (!claims.success) throw new UsageError("This is not a session token. Create one with `fairlead admin token`.");
  return { token, sessionId: claims.data.sid, expiresAt: claims.data.exp * 1000 };
}

function decodeClaims(token: string): unknown {
  try {
    return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
  } catch {
    return null;
  }
}
