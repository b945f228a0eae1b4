import { createHmac, timingSafeEqual } from "node:crypto";
import { DomainError } from "@fairlead/protocol/errors";

/**
 * Keeps other sites from posting our forms in somebody's name, sign-in included (docs/decisions/0011). Two checks, each
 * enough alone in a browser of today: where the browser says that the form came from, and a token that only our pages know.
 */
export interface FormGuardOptions {
  readonly publicUrl: string;
  readonly randomBytes: (n: number) => Uint8Array;
}

export interface PostedForm {
  readonly origin: string | undefined;
  /** The header `Sec-Fetch-Site`; browsers leave it out on plain http outside the own machine. */
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
  readonly #secure: boolean;

  constructor(options: FormGuardOptions) {
    this.#options = options;
    const { origin, protocol } = new URL(options.publicUrl);
    this.#origin = origin;
    this.#secure = protocol === "https:";
  }

  /** The token for the forms of a page, and the cookie to set where the browser has none yet. */
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
        "Your browser did not send our cookie back. Allow cookies for this site, then open the page again.",
      );
    }
    if (!isSame(tokenOf(secret, form.sessionId), form.token ?? "")) {
      throw refused("This page was out of date: you have signed in or out since it was opened. Open it again.");
    }
  }

  #checkSite({ fetchSite, origin }: PostedForm): void {
    // "none": the person repeated it from the address bar or a reload.
    if (fetchSite !== undefined) {
      if (fetchSite === "same-origin" || fetchSite === "none") return;
      throw refused("This form was sent by another site. Nothing was changed.");
    }
    // "null" is what a page with `referrer-policy: no-referrer` sends; the token decides there.
    if (origin === undefined || origin === "null" || origin === this.#origin) return;
    throw refused(`This page was opened at ${origin}, or sent by that site. Open ${this.#options.publicUrl} instead.`);
  }

  #secretIn(cookies: string | undefined): string | null {
    const value = cookieIn(cookies, this.#cookieName);
    return value !== null && SECRET_FORM.test(value) ? value : null;
  }

  get #cookieName(): string {
    return this.#secure ? "__Host-fairlead_form" : "fairlead_form";
  }

  #cookie(secret: string): string {
    return `${this.#cookieName}=${secret}; Path=/; HttpOnly; SameSite=Lax${this.#secure ? "; Secure" : ""}`;
  }
}

/** Bound to the session, so that a page from before a sign-in cannot act in the session after it. */
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
