import { RETURN_TO, SIGN_IN_PAGE, type SignInProvider } from "../sign-in/sign-in.ts";
import { failure, field, form, submit, success } from "./fields.ts";
import { type Content, type Html, html } from "./html.ts";
import type { Page } from "./layout.ts";

/** The ways to sign in. Pure. */

export interface SignInPage {
  readonly token: string;
  /** A path of ours. */
  readonly returnTo: string | undefined;
  readonly providers: readonly SignInProvider[];
  readonly password: boolean;
  /** As it was typed. */
  readonly email?: string | undefined;
  readonly failure?: string | undefined;
  readonly notice?: string | undefined;
}

export function signInPage(page: SignInPage): Page {
  return {
    title: "Sign in",
    body: html`${failure(page.failure)}${success(page.notice)}
      ${page.password && passwordForm(page)}
      ${providerButtons(page, page.password)}
      ${!page.password && page.providers.length === 0 && html`<p>No way to sign in is configured on this server. Ask its operator.</p>`}
      <p class="soft below">There is no open sign-up: new people come by an invitation from somebody who is here already. A forgotten
        password is set anew by a link from the operator.</p>`,
  };
}

function passwordForm({ token, returnTo, email }: SignInPage): Html {
  return form({ action: SIGN_IN_PAGE, token, hidden: { [RETURN_TO]: returnTo }, className: "stack" }, [
    field({
      name: "email",
      label: "E-mail address",
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

/** @param also there is another way above it. */
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
