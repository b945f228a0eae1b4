import { z } from "zod";
import { CLI_CLIENT } from "./oauth/oauth.ts";

/** The settings `signIn`. Pure. */

/** Environment variables contain lists as JSON; other text is left for the schema to reject. */
const fromText = <T extends z.ZodType>(schema: T): z.ZodPreprocess<T> =>
  z.preprocess((value) => {
    if (typeof value !== "string") return value;
    try {
      return JSON.parse(value) as unknown;
    } catch {
      return value;
    }
  }, schema);

const id = z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "must be 1 to 40 of a-z, 0-9 and -");
const name = z.string().trim().min(1).max(80);

/** Plain http only to this machine: otherwise sign-ins could be intercepted. */
const issuer = z.url("must be a URL").refine(isHttpsOrLoopback, "must be https, or http to this machine");

const oidcProvider = z
  .strictObject({
    id: id.refine((text) => text !== "credential", "is reserved for passwords; choose another"),
    name,
    issuer,
    clientId: z.string().min(1),
    clientSecret: z.string().min(1).optional(),
    clientSecretFile: z.string().min(1).optional(),
  })
  .refine(({ clientSecret, clientSecretFile }) => clientSecret === undefined || clientSecretFile === undefined, {
    path: ["clientSecretFile"],
    message: "set either clientSecret or clientSecretFile, not both",
  });
export type OidcProviderConfig = z.output<typeof oidcProvider>;

const client = z.strictObject({
  id: id.refine((text) => text !== CLI_CLIENT.id, "is built in; choose another"),
  name,
  redirectUris: z
    .array(
      z
        .string()
        .max(2048)
        .refine(isRedirect, "must be https, http to a loopback address, or an app's custom scheme with a dot"),
    )
    .min(1),
});

export const signInSettings = z
  .strictObject({
    password: fromText(z.boolean())
      .default(true)
      .describe("Allow sign-in with email and password. When false, only OIDC providers are available."),
    sessionDays: z
      .number()
      .int()
      .min(1)
      .max(365)
      .default(30)
      .describe(
        "Days that a browser stays signed in. A program's session ends after the same number of days without use.",
      ),
    oidc: fromText(unique(oidcProvider))
      .default([])
      .describe(
        "OIDC providers for sign-in: a list of `id`, `name` (on the button), `issuer`, `clientId`, and `clientSecretFile` or " +
          "`clientSecret`. Register `<publicUrl>/sign-in/<id>/callback` as the redirect URI at the provider. As an environment variable: JSON.",
      ),
    clients: fromText(unique(client))
      .default([])
      .describe(
        "Programs, besides the CLI, that users can authorize to act for them (public OAuth clients): a list of `id`, `name` and " +
          "`redirectUris`. For loopback redirect URIs, any port is accepted. As an environment variable: JSON.",
      ),
  })
  .refine(({ password, oidc }) => password || oidc.length > 0, {
    path: ["password"],
    message: "cannot be false unless an OIDC provider is configured",
  })
  .prefault({});
export type SignInSettings = z.output<typeof signInSettings>;

function unique<T extends z.ZodType<{ readonly id: string }>>(item: T): z.ZodArray<T> {
  return z
    .array(item)
    .refine((items) => new Set(items.map((each) => each.id)).size === items.length, "contains the same id twice");
}

function isHttpsOrLoopback(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.protocol === "https:" || isLoopback(url));
}

/** RFC 8252: `https`, a loopback address, or a custom scheme with a domain (`com.example.app:/callback`). */
function isRedirect(text: string): boolean {
  const url = URL.parse(text);
  if (!url || text.includes("#") || url.username !== "" || url.password !== "") return false;
  return isHttpsOrLoopback(text) || /^[a-z][a-z0-9-]*(\.[a-z0-9-]+)+:$/.test(url.protocol);
}

function isLoopback({ protocol, hostname }: URL): boolean {
  return protocol === "http:" && ["127.0.0.1", "[::1]", "localhost"].includes(hostname);
}
