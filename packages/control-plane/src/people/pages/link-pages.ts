import type { Role } from "@fairlead/protocol/resources";
import { PASSWORD_MIN } from "../sign-in/password.ts";
import { RETURN_TO, SIGN_IN_PAGE, type SignInProvider } from "../sign-in/sign-in.ts";
import { failure, field, form, submit } from "./html/fields.ts";
import type { FormErrors, FormFields } from "./html/form-input.ts";
import { type Html, html } from "./html/html.ts";
import type { HtmlPage } from "./html/layout.ts";
import { providerButtons } from "./sign-in-page.ts";

/** Pages of one-time links. Viewing a page does not use the link, because mail scanners and previews open links. Pure. */

export interface LinkForm {
  /** The page's own path, to which the form is posted. */
  readonly path: string;
  readonly token: string;
  readonly fields: FormFields;
  readonly errors: FormErrors;
  readonly failure?: string | undefined;
}

export const PASSWORD_HINT = `At least ${PASSWORD_MIN} characters. A few random words are easy to remember and hard to guess.`;

/** @param page without a `password`, a provider is connected afterwards. */
export function setUpPage(page: LinkForm & { readonly password: boolean }): HtmlPage {
  const { fields, errors } = page;
  return {
    title: "Set up Fairlead",
    body: html`${failure(page.failure, page.errors)}
      <p>There are no users yet. The account that you create now is the administrator of this platform and can invite others.</p>
      ${form({ action: page.path, token: page.token, className: "stack" }, [
        field({
          name: "email",
          label: "Email address",
          type: "email",
          autocomplete: "username",
          value: fields["email"],
          error: errors["email"],
          first: firstOf(errors, "email") === "email",
        }),
        nameField(page),
        page.password && newPasswordField(page),
        !page.password &&
          html`<p>Passwords are not used here. On the next page, connect a provider to sign in with.</p>`,
        submit("Create administrator account"),
      ])}`,
  };
}

export function resetPage(page: LinkForm & { readonly email: string; readonly endsSessions: boolean }): HtmlPage {
  return {
    title: "Set a new password",
    body: html`${failure(page.failure, page.errors)}
      ${page.endsSessions && html`<p>You will be signed out everywhere else.</p>`}
      ${form({ action: page.path, token: page.token, className: "stack" }, [
        accountField("Account", page.email),
        newPasswordField(page, "password"),
        submit("Set password"),
      ])}`,
  };
}

export interface InvitationView {
  /** The invited user. */
  readonly email: string;
  readonly projectName: string;
  readonly role: Role;
}

const ROLE_WORDS: Readonly<Record<Role, string>> = {
  owner: "an owner",
  admin: "an admin",
  member: "a member",
  viewer: "a viewer",
};

const invited = ({ projectName, role }: InvitationView): Html =>
  html`<p>You are invited to the project <strong>${projectName}</strong> as ${ROLE_WORDS[role]}.</p>`;

/** For the invited user, signed in. */
export function joinPage(page: LinkForm & { readonly invitation: InvitationView }): HtmlPage {
  return {
    title: "Join the project",
    body: html`${failure(page.failure, page.errors)}${invited(page.invitation)}
      <p class="soft">You are signed in as ${page.invitation.email}.</p>
      ${form({ action: page.path, token: page.token, className: "stack" }, submit("Join"))}`,
  };
}

/** For another signed-in user. */
export function otherPersonPage(page: {
  readonly token: string;
  readonly path: string;
  readonly signedInAs: string;
  readonly invitedAs: string;
}): HtmlPage {
  return {
    title: "This invitation is for a different user",
    body: html`<p>It is for ${page.invitedAs}, but you are signed in as ${page.signedInAs}. Sign out to use it, or open it in
      another browser profile.</p>
      ${form({ action: "/sign-out", token: page.token, hidden: { [RETURN_TO]: page.path }, className: "stack" }, submit("Sign out", "plain"))}`,
  };
}

/** Without a session. */
export function invitationPage(
  page: LinkForm & {
    readonly invitation: InvitationView;
    readonly providers: readonly SignInProvider[];
    readonly password: boolean;
  },
): HtmlPage {
  const { invitation, path, token, providers, password } = page;
  const signIn = `${SIGN_IN_PAGE}?${new URLSearchParams({ [RETURN_TO]: path }).toString()}`;
  return {
    title: "You are invited",
    body: html`${failure(page.failure, page.errors)}${invited(invitation)}
      <p>Do you have an account here? <a href="${signIn}">Sign in to join</a></p>
      ${
        password &&
        html`<h2>Create an account</h2>
        ${form({ action: path, token, className: "stack" }, [
          accountField("Your email address", invitation.email),
          nameField(page),
          newPasswordField(page),
          submit("Create account and join"),
        ])}`
      }
      ${providerButtons({ token, returnTo: path, providers }, password)}`,
  };
}

/** Shows the account to users and password managers. */
function accountField(label: string, email: string): Html {
  return field({ name: "email", label, type: "email", autocomplete: "username", value: email, readOnly: true });
}

/** The field to focus: the first one with an error. */
function firstOf(errors: FormErrors, usual: string): string {
  return ["email", "name", "password"].find((name) => name in errors) ?? usual;
}

function nameField({ fields, errors }: LinkForm): Html {
  return field({
    name: "name",
    label: "Your name",
    type: "text",
    autocomplete: "name",
    value: fields["name"],
    hint: "The name that others see.",
    error: errors["name"],
    first: firstOf(errors, "") === "name",
  });
}

function newPasswordField({ errors }: LinkForm, usual = ""): Html {
  return field({
    name: "password",
    label: "New password",
    type: "password",
    autocomplete: "new-password",
    hint: PASSWORD_HINT,
    error: errors["password"],
    first: firstOf(errors, usual) === "password",
  });
}
