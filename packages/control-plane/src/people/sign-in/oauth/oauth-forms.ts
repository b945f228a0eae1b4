import { z } from "zod";
import { DEVICE_CODE_GRANT, OAuthRefusal } from "./oauth.ts";

/** Parses requests to the OAuth endpoints. Unknown parameters are ignored (RFC 6749 §3.1, §3.2). Pure. */

const text = (description: string): z.ZodString => z.string().max(4096, "is too long").describe(description);

const clientId = text("A registered public client. `fairlead-cli` is built in.");
const scope = text("`offline_access` requests a refresh token. Access is always the same as the user's.").optional();

export const authorizationQuery = z.object({
  client_id: clientId,
  redirect_uri: text("A redirect URI of the client. For loopback URIs, any port is accepted (RFC 8252)."),
  response_type: text("`code`."),
  scope,
  state: text("Returned with the response.").optional(),
  code_challenge: text("PKCE (RFC 7636). Required.").optional(),
  code_challenge_method: text("`S256`.").optional(),
});

export const deviceForm = z.object({ client_id: clientId, scope });

export const revocationForm = z.object({
  client_id: clientId,
  token: z
    .string()
    .max(16_384, "is too long")
    .describe("A refresh or access token. Either one ends the session and revokes both."),
});

export const tokenForm = z.object({
  grant_type: text(`\`authorization_code\`, \`refresh_token\` or \`${DEVICE_CODE_GRANT}\`.`),
  client_id: clientId,
  code: text("For `authorization_code`.").optional(),
  redirect_uri: text("For `authorization_code`: the value sent to the authorization endpoint.").optional(),
  code_verifier: text("For `authorization_code`: the value that the challenge was derived from.").optional(),
  refresh_token: text("For `refresh_token`: the newest one. Each can be used once.").optional(),
  device_code: text("For the device code grant.").optional(),
});

const grants = {
  authorization_code: tokenForm
    .pick({ client_id: true, code: true, redirect_uri: true, code_verifier: true })
    .required(),
  refresh_token: tokenForm.pick({ client_id: true, refresh_token: true }).required(),
  [DEVICE_CODE_GRANT]: tokenForm.pick({ client_id: true, device_code: true }).required(),
};

export type TokenRequest =
  | ({ readonly grant_type: "authorization_code" } & Readonly<z.infer<(typeof grants)["authorization_code"]>>)
  | ({ readonly grant_type: "refresh_token" } & Readonly<z.infer<(typeof grants)["refresh_token"]>>)
  | ({ readonly grant_type: typeof DEVICE_CODE_GRANT } & Readonly<z.infer<(typeof grants)[typeof DEVICE_CODE_GRANT]>>);

/** @throws OAuthRefusal */
export function readTokenRequest(form: z.infer<typeof tokenForm>): TokenRequest {
  switch (form.grant_type) {
    case "authorization_code":
      return { grant_type: form.grant_type, ...whole(grants.authorization_code, form) };
    case "refresh_token":
      return { grant_type: form.grant_type, ...whole(grants.refresh_token, form) };
    case DEVICE_CODE_GRANT:
      return { grant_type: form.grant_type, ...whole(grants[DEVICE_CODE_GRANT], form) };
    default:
      throw new OAuthRefusal("unsupported_grant_type", `Supported grants: ${Object.keys(grants).join(", ")}.`);
  }
}

function whole<T>(schema: z.ZodType<T>, form: z.infer<typeof tokenForm>): T {
  const result = schema.safeParse(form);
  if (result.success) return result.data;
  const missing = result.error.issues.map(({ path }) => path.join(".")).join(", ");
  throw new OAuthRefusal("invalid_request", `This grant requires: ${missing}.`);
}

/** @param body `application/x-www-form-urlencoded`. @throws OAuthRefusal for a repeated parameter (RFC 6749 §3.2) */
export function parseParameters(body: string): Record<string, string> {
  const parameters = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(body)) {
    // Empty parameters count as absent.
    if (value === "") continue;
    if (parameters.has(name)) throw new OAuthRefusal("invalid_request", "Parameters must not be repeated.");
    parameters.set(name, value);
  }
  return Object.fromEntries(parameters);
}
