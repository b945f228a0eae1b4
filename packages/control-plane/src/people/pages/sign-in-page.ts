import { RETURN_TO, SIGN_IN_PAGE, type SignInProvider } from "../sign-in/sign-in.ts";
import { failure, field, form, submit, success } from "./html/fields.ts";
import { type Content, type Html, html } from "./html/html.ts";
import type { HtmlPage } from "./html/layout.ts";

/** The sign-in page. Pure. */

export interface SignInPage {
  readonly token: string;
  /** A path on this host. */
  readonly returnTo: string | undefined;
  readonly providers: readonly SignInProvider[];
  readonly password: boolean;
  /** As entered. */
  readonly email?: string | undefined;
  readonly failure?: string | undefined;
  readonly notice?: string | undefined;
}

export function signInPage(page: SignInPage): HtmlPage {
  return {
    title: "Sign in",
    body: html`${failure(page.failure)}${success(page.notice)}
      ${page.password && passwordForm(page)}
      ${providerButtons(page, page.password)}
      ${!page.password && page.providers.length === 0 && html`<p>No sign-in method is configured on this server. Contact its administrator.</p>`}
      <p class="soft below">Sign-up is by invitation only. Forgot your password? Ask your administrator for a reset link.</p>`,
  };
}

function passwordForm({ token, returnTo, email }: SignInPage): Html {
  return form({ action: SIGN_IN_PAGE, token, hidden: { [RETURN_TO]: returnTo }, className: "stack" }, [
    field({
      name: "email",
      label: "Email address",
      type: "email",
      autocomplete: "username",
      value: email,
      first: email === undefined,
    }),
    field({
      name: "password",
      label: "Password",
      type: "password",
      autocomplete: "current-password",
      first: email !== undefined,
    }),
    submit("Sign in"),
  ]);
}

/** @param also whether there is another method above. */
export function providerButtons(
  { token, returnTo, providers }: Pick<SignInPage, "token" | "returnTo" | "providers">,
  also: boolean,
): Content {
  if (providers.length === 0) return null;
  const buttons = providers.map(({ id, name }) =>
    form(
      {
        action: `${SIGN_IN_PAGE}/${encodeURIComponent(id)}`,
        token,
        hidden: { [RETURN_TO]: returnTo },
        className: "stack",
      },
      submit(`Continue with ${name}`, "plain"),
    ),
  );
  return html`${also && html`<p class="or">or</p>`}<div class="stack providers">${buttons}</div>`;
}
