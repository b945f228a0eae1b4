import type { Role } from "@fairlead/protocol/resources";
import { PASSWORD_MIN } from "../sign-in/password.ts";
import { RETURN_TO, SIGN_IN_PAGE, type SignInProvider } from "../sign-in/sign-in.ts";
import { failure, field, form, submit } from "./fields.ts";
import type { FormErrors, FormFields } from "./form-input.ts";
import { type Html, html } from "./html.ts";
import type { Page } from "./layout.ts";
import { providerButtons } from "./sign-in-page.ts";

/** Where one-time links lead. Looking at a page spends nothing: mail scanners and previews look at them too. Pure. */

export interface LinkForm {
  /** Of the page itself: the form goes back to it. */
  readonly path: string;
  readonly token: string;
  readonly fields: FormFields;
  readonly errors: FormErrors;
  readonly failure?: string | undefined;
}

export const PASSWORD_HINT = `At least ${PASSWORD_MIN} characters. A few words in a row are easy to remember and hard to guess.`;

/** @param page without a `password`, a provider is to be connected afterwards. */
export function setUpPage(page: LinkForm & { readonly password: boolean }): Page {
  const { fields, errors } = page;
  return {
    title: "Set up Fairlead",
    body: html`${failure(page.failure, page.errors)}
      <p>Nobody is here yet. The account that you make now administers this platform and invites everybody else.</p>
      ${form({ action: page.path, token: page.token, className: "stack" }, [
        field({
          name: "email",
          label: "E-mail address",
          type: "email",
          autocomplete: "username",
          value: fields["email"],
          error: errors["email"],
          first: firstOf(errors, "email") === "email",
        }),
        nameField(page),
        page.password && newPasswordField(page),
        !page.password &&
          html`<p>Passwords are not used here: connect a provider on the next page, to sign in by later.</p>`,
        submit("Make the administrator's account"),
      ])}`,
  };
}

export function resetPage(page: LinkForm & { readonly email: string }): Page {
  return {
    title: "Set a new password",
    body: html`${failure(page.failure, page.errors)}
      <p>You will be signed out everywhere else.</p>
      ${form({ action: page.path, token: page.token, className: "stack" }, [
        accountField("Account", page.email),
        newPasswordField(page, "password"),
        submit("Set the password"),
      ])}`,
  };
}

export interface Invitation {
  /** Whom it is for. */
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

const invited = ({ projectName, role }: Invitation): Html =>
  html`<p>You are invited to the project <strong>${projectName}</strong> as ${ROLE_WORDS[role]}.</p>`;

/** For somebody who is signed in as the person that was invited. */
export function joinPage(page: LinkForm & { readonly invitation: Invitation }): Page {
  return {
    title: "Join the project",
    body: html`${failure(page.failure, page.errors)}${invited(page.invitation)}
      <p class="soft">You are signed in as ${page.invitation.email}.</p>
      ${form({ action: page.path, token: page.token, className: "stack" }, submit("Join"))}`,
  };
}

/** For somebody who is signed in as another person. */
export function otherPersonPage(page: {
  readonly token: string;
  readonly path: string;
  readonly signedInAs: string;
  readonly invitedAs: string;
}): Page {
  return {
    title: "This invitation is for somebody else",
    body: html`<p>It is for ${page.invitedAs}, and you are signed in as ${page.signedInAs}. Sign out to use it, or open it in
      another browser profile.</p>
      ${form({ action: "/sign-out", token: page.token, hidden: { [RETURN_TO]: page.path }, className: "stack" }, submit("Sign out", "plain"))}`,
  };
}

/** For somebody who is not signed in. */
export function invitationPage(
  page: LinkForm & {
    readonly invitation: Invitation;
    readonly providers: readonly SignInProvider[];
    readonly password: boolean;
  },
): Page {
  const { invitation, path, token, providers, password } = page;
  const signIn = `${SIGN_IN_PAGE}?${new URLSearchParams({ [RETURN_TO]: path }).toString()}`;
  return {
    title: "You are invited",
    body: html`${failure(page.failure, page.errors)}${invited(invitation)}
      <p>Do you have an account here? <a href="${signIn}">Sign in to join</a></p>
      ${
        password &&
        html`<h2>Make an account</h2>
        ${form({ action: path, token, className: "stack" }, [
          accountField("Your e-mail address", invitation.email),
          nameField(page),
          newPasswordField(page),
          submit("Make an account and join"),
        ])}`
      }
      ${providerButtons({ token, returnTo: path, providers }, password)}`,
  };
}

/** For people who see which account it is, and for password managers. */
function accountField(label: string, email: string): Html {
  return field({ name: "email", label, type: "email", autocomplete: "username", value: email, readOnly: true });
}

/** Where typing begins: at the first mistake. */
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
    hint: "As others will see it.",
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
