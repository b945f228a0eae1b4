import { DomainError } from "@fairlead/protocol/errors";
import { z } from "zod";
import { OAUTH_ERRORS, OAuthRefusal } from "./oauth.ts";

const refusalBody = z.object({
  // The library's code for a deleted user.
  error: z.preprocess((code) => (code === "invalid_user" ? "invalid_grant" : code), z.enum(OAUTH_ERRORS)),
  error_description: z.string().optional(),
});

/** Converts an error of the sign-in library. */
export async function readOAuthRefusal(response: Response): Promise<OAuthRefusal | DomainError> {
  const body = refusalBody.safeParse(await response.json().catch(() => null));
  if (body.success) return new OAuthRefusal(body.data.error, body.data.error_description ?? body.data.error);
  return new DomainError("internal", "The sign-in failed.", { note: `the library returned ${response.status}` });
}
