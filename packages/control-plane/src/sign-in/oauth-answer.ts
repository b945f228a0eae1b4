import { DomainError } from "@fairlead/protocol/errors";
import { z } from "zod";
import { OAUTH_ERRORS, OAuthRefusal } from "./oauth.ts";

const refusalBody = z.object({
  // The library's own word for a user who is gone.
  error: z.preprocess((code) => (code === "invalid_user" ? "invalid_grant" : code), z.enum(OAUTH_ERRORS)),
  error_description: z.string().optional(),
});

/** What the sign-in library refused, as an error of ours. */
export async function readRefusal(response: Response): Promise<OAuthRefusal | DomainError> {
  const body = refusalBody.safeParse(await response.json().catch(() => null));
  if (body.success) return new OAuthRefusal(body.data.error, body.data.error_description ?? body.data.error);
  return new DomainError("internal", "The sign-in did not work.", { note: `the library answered ${response.status}` });
}
