import { z } from "zod";

/** What the command line keeps between its runs, one entry a platform. Loose: a newer version's fields survive an older one. */

const loginSchema = z.looseObject({
  accessToken: z.string(),
  /** Unix milliseconds by this machine's clock. */
  expiresAt: z.number(),
  refreshToken: z.string().nullable(),
  /** Signed in with `--insecure`: refreshing may go over plain http too. */
  insecure: z.boolean(),
});
export type Login = z.infer<typeof loginSchema>;

const platformSchema = z.looseObject({
  login: loginSchema.nullable(),
  /** The project that commands mean when none is named. */
  projectId: z.string().nullable(),
});
type PlatformEntry = z.infer<typeof platformSchema>;

export const credentialsSchema = z.looseObject({
  version: z.literal(1),
  /** The platform of the last login. */
  defaultUrl: z.string().nullable(),
  platforms: z.record(z.string(), platformSchema),
});
export type Credentials = z.infer<typeof credentialsSchema>;

export const NO_CREDENTIALS: Credentials = { version: 1, defaultUrl: null, platforms: {} };

export function platformOf(credentials: Credentials, url: string): PlatformEntry {
  // `Object.hasOwn`: an address is no property of every object.
  if (!Object.hasOwn(credentials.platforms, url)) return { login: null, projectId: null };
  return credentials.platforms[url] ?? { login: null, projectId: null };
}

export function withPlatform(credentials: Credentials, url: string, change: Partial<PlatformEntry>): Credentials {
  const platform = { ...platformOf(credentials, url), ...change };
  return { ...credentials, platforms: { ...credentials.platforms, [url]: platform } };
}

export function withoutPlatform(credentials: Credentials, url: string): Credentials {
  const rest = Object.entries(credentials.platforms).filter(([other]) => other !== url);
  return { ...credentials, platforms: Object.fromEntries(rest) };
}
