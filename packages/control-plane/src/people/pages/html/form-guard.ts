import { createHmac, timingSafeEqual } from "node:crypto";
import { type CookieScope, cookieScope } from "@fairlead/hosting/public-url";
import { DomainError } from "@fairlead/protocol/errors";

/**
 * CSRF protection, including sign-in (docs/decisions/0011): the browser's origin headers, and a token that only our pages know. Each check
 * is sufficient in current browsers.
 */
export interface FormGuardOptions {
  readonly publicUrl: string;
  readonly randomBytes: (n: number) => Uint8Array;
}

export interface PostedForm {
  readonly origin: string | undefined;
  /** The header `Sec-Fetch-Site`, which browsers omit over plain http except on localhost. */
  readonly fetchSite: string | undefined;
  readonly cookies: string | undefined;
  readonly sessionId: string | null;
  readonly token: string | undefined;
}

const SECRET_BYTES = 32;
const SECRET_FORM = /^[\w-]{43}$/;

export class FormGuard {
  readonly #options: FormGuardOptions;
  readonly #origin: string;
  readonly #cookieScope: CookieScope;

  constructor(options: FormGuardOptions) {
    this.#options = options;
    this.#origin = new URL(options.publicUrl).origin;
    this.#cookieScope = cookieScope(options.publicUrl);
  }

  /** The token for the forms of a page, and the cookie to set if the browser has none. */
  tokenFor(cookies: string | undefined, sessionId: string | null): { token: string; setCookie: string | null } {
    const known = this.#secretIn(cookies);
    const secret = known ?? Buffer.from(this.#options.randomBytes(SECRET_BYTES)).toString("base64url");
    return { token: tokenOf(secret, sessionId), setCookie: known === null ? this.#cookie(secret) : null };
  }

  /** @throws DomainError permission_denied */
  check(form: PostedForm): void {
    this.#checkSite(form);
    const secret = this.#secretIn(form.cookies);
    if (secret === null) {
      throw refused(
        "Your browser did not send a required cookie. Allow cookies for this site, then open the page again.",
      );
    }
    if (!isSame(tokenOf(secret, form.sessionId), form.token ?? "")) {
      throw refused("This page is out of date because you have signed in or out since it was opened. Open it again.");
    }
  }

  #checkSite({ fetchSite, origin }: PostedForm): void {
    // "none": reloaded, or entered in the address bar.
    if (fetchSite !== undefined) {
      if (fetchSite === "same-origin" || fetchSite === "none") return;
      throw refused("This form was sent by another site. Nothing was changed.");
    }
    // Pages with `referrer-policy: no-referrer` send "null"; then the token decides.
    if (origin === undefined || origin === "null" || origin === this.#origin) return;
    throw refused(`This page was opened at or sent by ${origin}. Open ${this.#options.publicUrl} instead.`);
  }

  #secretIn(cookies: string | undefined): string | null {
    const value = cookieIn(cookies, this.#cookieName);
    return value !== null && SECRET_FORM.test(value) ? value : null;
  }

  get #cookieName(): string {
    return `${this.#cookieScope.prefix}fairlead_form`;
  }

  #cookie(secret: string): string {
    const { path, secure } = this.#cookieScope;
    return `${this.#cookieName}=${secret}; Path=${path}; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;
  }
}

/** Bound to the session, so that a page opened before a sign-in cannot act in the new session. */
function tokenOf(secret: string, sessionId: string | null): string {
  return createHmac("sha256", secret)
    .update(sessionId ?? "")
    .digest("base64url");
}

function isSame(expected: string, sent: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(sent)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function cookieIn(header: string | undefined, name: string): string | null {
  for (const pair of header?.split(";") ?? []) {
    const [key, value] = pair.trim().split("=", 2);
    if (key === name && value !== undefined) return value;
  }
  return null;
}

function refused(message: string): DomainError {
  return new DomainError("permission_denied", message);
}
