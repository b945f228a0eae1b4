import type { CallOrigin } from "../auth/principal.ts";
import type { SignInSession } from "../users/user.ts";

/** What signing in is about, in plain values. Pure. */

/** Who is at the other end of a sign-in. */
export interface SignInCaller {
  readonly origin: CallOrigin;
  readonly userAgent: string | undefined;
}

export interface SignedIn {
  readonly session: SignInSession;
  /** Values of `Set-Cookie`, one header each. */
  readonly setCookies: readonly string[];
}

/** A button of the sign-in page. */
export interface SignInProvider {
  readonly id: string;
  readonly name: string;
}

/** An OIDC account that a user has signed in with, or linked. */
export interface LinkedAccount {
  readonly providerId: string;
  readonly createdAt: number;
}

/** Pages of the platform host that the sign-in sends people to. */
export const SIGN_IN_PAGE = "/sign-in";
export const DEVICE_PAGE = "/device";
export const CONSENT_PAGE = "/consent";

/** Where an OIDC provider sends people back to; registered there as the redirect URI. */
export const oidcCallbackPath = (providerId: string): string => `/sign-in/${providerId}/callback`;

/** The parameter of the sign-in page that says where to go on afterwards. */
export const RETURN_TO = "return_to";

/** @returns the path if it leads somewhere on this host, else null: a link must not send people elsewhere after signing in. */
export function localPath(text: string | undefined, publicUrl: string): string | null {
  if (!text?.startsWith("/") || text.length > 4096) return null;
  const url = URL.parse(text, publicUrl);
  if (url?.origin !== new URL(publicUrl).origin) return null;
  const path = `${url.pathname}${url.search}`;
  // Taken without its dots, `/..//other.example` is another host's name.
  return path.startsWith("//") ? null : path;
}
