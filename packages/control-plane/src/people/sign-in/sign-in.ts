import type { CallOrigin } from "../../access/auth/principal.ts";
import type { SignInSession } from "../users/user.ts";

/** Sign-in types and paths. Pure. */

/** The client that signs in. */
export interface SignInCaller {
  readonly origin: CallOrigin;
  readonly userAgent: string | undefined;
}

export interface SignedIn {
  readonly session: SignInSession;
  /** `Set-Cookie` values, one header each. */
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

/** Platform host pages that sign-in redirects to. */
export const SIGN_IN_PAGE = "/sign-in";
export const DEVICE_PAGE = "/device";
export const CONSENT_PAGE = "/consent";

/** The redirect URI registered at the OIDC provider. */
export const oidcCallbackPath = (providerId: string): string => `/sign-in/${providerId}/callback`;

/** Query parameter of the sign-in page: where to redirect afterwards. */
export const RETURN_TO = "return_to";

/** @returns the path if it is on this host, else null: a link must not redirect elsewhere after sign-in. */
export function localPath(text: string | undefined, publicUrl: string): string | null {
  if (!text?.startsWith("/") || text.length > 4096) return null;
  const url = URL.parse(text, publicUrl);
  if (url?.origin !== new URL(publicUrl).origin) return null;
  const path = `${url.pathname}${url.search}`;
  // With its dots resolved, `/..//other.example` becomes another host's address.
  return path.startsWith("//") ? null : path;
}
