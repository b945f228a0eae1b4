import { z } from "zod";

/** The stored credentials, one entry per platform. Loose, so that unknown fields of newer versions are kept. */

const loginSchema = z.looseObject({
  accessToken: z.string(),
  /** Unix milliseconds on this machine's clock. */
  expiresAt: z.number(),
  refreshToken: z.string().nullable(),
  /** Signed in with `--insecure`: refreshing may use plain HTTP too. */
  insecure: z.boolean(),
});
export type Login = z.infer<typeof loginSchema>;

const platformSchema = z.looseObject({
  login: loginSchema.nullable(),
  /** The default project. */
  projectId: z.string().nullable(),
});
type PlatformEntry = z.infer<typeof platformSchema>;

export const credentialsSchema = z.looseObject({
  version: z.literal(1),
  /** The platform of the last login. */
  defaultUrl: z.string().nullable(),
  platforms: z.record(z.string(), platformSchema),
});
export type LoginCredentials = z.infer<typeof credentialsSchema>;

export const NO_CREDENTIALS: LoginCredentials = { version: 1, defaultUrl: null, platforms: {} };

export function platformOf(credentials: LoginCredentials, url: string): PlatformEntry {
  // Guards against keys such as `constructor`.
  if (!Object.hasOwn(credentials.platforms, url)) return { login: null, projectId: null };
  return credentials.platforms[url] ?? { login: null, projectId: null };
}

export function withPlatform(
  credentials: LoginCredentials,
  url: string,
  change: Partial<PlatformEntry>,
): LoginCredentials {
  const platform = { ...platformOf(credentials, url), ...change };
  return { ...credentials, platforms: { ...credentials.platforms, [url]: platform } };
}

export function withoutPlatform(credentials: LoginCredentials, url: string): LoginCredentials {
  const rest = Object.entries(credentials.platforms).filter(([other]) => other !== url);
  // The default becomes another platform with a login, if there is one.
  const next = rest.findLast(([, { login }]) => login !== null)?.[0] ?? url;
  const defaultUrl = credentials.defaultUrl === url ? next : credentials.defaultUrl;
  return { ...credentials, defaultUrl, platforms: Object.fromEntries(rest) };
}
