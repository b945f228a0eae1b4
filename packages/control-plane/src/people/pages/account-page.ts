import { rfc3339 } from "@fairlead/protocol/values/clock";
import { failure, field, form, submit, success } from "./html/fields.ts";
import type { FormErrors } from "./html/form-input.ts";
import { type Content, type Html, html } from "./html/html.ts";
import type { HtmlPage } from "./html/layout.ts";
import { PASSWORD_HINT } from "./link-pages.ts";

/** The account page: user, sessions, providers. Pure. */

export interface AccountSession {
  readonly id: string;
  /** `Firefox on Linux`, `fairlead-cli`. */
  readonly device: string;
  readonly address: string | null;
  /** Unix milliseconds. */
  readonly signedInAt: number;
  readonly current: boolean;
}

export interface LinkedProvider {
  readonly id: string;
  readonly name: string;
  readonly linked: boolean;
}

export interface AccountPage {
  readonly token: string;
  readonly email: string;
  readonly name: string;
  readonly platformAdmin: boolean;
  /** False for a user who signed up with a provider. */
  readonly hasPassword: boolean;
  readonly sessions: readonly AccountSession[];
  readonly providers: readonly LinkedProvider[];
  readonly errors?: FormErrors;
  readonly typedName?: string | undefined;
  readonly failure?: string | undefined;
  readonly notice?: string | undefined;
}

export function accountPage(page: AccountPage): HtmlPage {
  return {
    title: "Your account",
    wide: true,
    body: html`${failure(page.failure, page.errors)}${success(page.notice)}
      <dl>
        <dt>Name</dt><dd>${page.name}</dd>
        <dt>Email address</dt><dd>${page.email}</dd>
        ${page.platformAdmin && html`<dt>Rights</dt><dd>Platform administrator</dd>`}
      </dl>
      ${form({ action: "/sign-out", token: page.token }, submit("Sign out", "plain"))}
      ${nameSection(page)}
      ${page.hasPassword && passwordSection(page)}
      ${sessionsSection(page)}
      ${page.providers.length > 0 && providersSection(page)}`,
  };
}

function nameSection({ token, name, typedName, errors }: AccountPage): Html {
  return section("name", "Change your name", [
    form({ action: "/account/name", token }, [
      field({
        name: "name",
        label: "Name",
        type: "text",
        autocomplete: "name",
        value: typedName ?? name,
        error: errors?.["name"],
      }),
      submit("Save name"),
    ]),
  ]);
}

function passwordSection({ token, email, errors }: AccountPage): Html {
  return section("password", "Change your password", [
    html`<p class="soft">You stay signed in here and are signed out everywhere else.</p>`,
    form({ action: "/account/password", token }, [
      html`<input type="hidden" autocomplete="username" value="${email}">`,
      field({
        name: "current",
        label: "Current password",
        type: "password",
        autocomplete: "current-password",
        error: errors?.["current"],
      }),
      field({
        name: "next",
        label: "New password",
        type: "password",
        autocomplete: "new-password",
        hint: PASSWORD_HINT,
        error: errors?.["next"],
      }),
      submit("Change password"),
    ]),
  ]);
}

function sessionsSection({ token, sessions }: AccountPage): Html {
  const rows = sessions.map(
    ({ id, device, address, signedInAt, current }) => html`<li>
      <div>
        <p><strong>${device}</strong> ${current && html`<span class="tag">this browser</span>`}</p>
        <p class="soft">since ${timeOf(signedInAt)}${address !== null && ` from ${address}`}</p>
      </div>
      ${
        !current &&
        form(
          { action: "/account/sessions", token, hidden: { session: id } },
          html`<button class="danger" aria-label="Sign out ${device}, since ${minute(signedInAt)}">Sign out</button>`,
        )
      }
    </li>`,
  );
  return section("sessions", "Where you are signed in", html`<ul class="rows">${rows}</ul>`);
}

function providersSection({ token, providers }: AccountPage): Html {
  const rows = providers.map(
    ({ id, name, linked }) => html`<li>
      <div><p><strong>${name}</strong></p></div>
      ${
        linked
          ? form(
              { action: `/account/providers/${id}/disconnect`, token },
              html`<span class="tag">connected</span> <button class="danger" aria-label="Disconnect ${name}">Disconnect</button>`,
            )
          : form(
              { action: `/account/providers/${id}`, token },
              html`<button class="plain" aria-label="Connect ${name}">Connect</button>`,
            )
      }
    </li>`,
  );
  return section("providers", "Other ways to sign in", html`<ul class="rows">${rows}</ul>`);
}

function section(id: string, title: string, content: Content): Html {
  return html`<section aria-labelledby="${id}-title"><h2 id="${id}-title">${title}</h2>${content}</section>`;
}

function timeOf(at: number): Html {
  return html`<time datetime="${rfc3339(at)}">${minute(at)}</time>`;
}

/** `2026-03-02 09:30 UTC`: the server does not know the reader's time zone. */
function minute(at: number): string {
  return `${rfc3339(at).slice(0, 16).replace("T", " ")} UTC`;
}
