import type { FormErrors } from "./form-input.ts";
import { type Content, type Html, html } from "./html.ts";

/** Form elements: every input has a label and shows its error next to it. Pure. */

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly type: "text" | "email" | "password";
  /** For password managers and browsers: `username`, `current-password`, `new-password`, `name`… */
  readonly autocomplete: string;
  readonly value?: string | undefined;
  readonly hint?: string | undefined;
  /** The error in the submitted value. */
  readonly error?: string | undefined;
  /** Whether the input gets the focus first. */
  readonly first?: boolean;
  readonly readOnly?: boolean;
  /** Groups characters, for codes that users copy from another screen. */
  readonly code?: boolean;
}

export function field(input: Field): Html {
  const { name, label, type, hint, error } = input;
  const notes = [hint !== undefined && `${name}-hint`, error !== undefined && `${name}-error`].filter(Boolean);
  return html`<div class="field">
    <label for="${name}">${label}</label>
    ${hint !== undefined && html`<p class="hint" id="${name}-hint">${hint}</p>`}
    ${error !== undefined && html`<p class="error" id="${name}-error">${error}</p>`}
    <input id="${name}" name="${name}" type="${type}" autocomplete="${input.autocomplete}" required
      ${type !== "password" && input.value !== undefined && html`value="${input.value}"`}
      ${type !== "text" && html`autocapitalize="none" spellcheck="false"`}
      ${input.code === true && html`class="code" autocapitalize="characters" spellcheck="false"`}
      ${input.readOnly === true && html`readonly`}
      ${input.first === true && html`autofocus`}
      ${error !== undefined && html`aria-invalid="true"`}
      ${notes.length > 0 && html`aria-describedby="${notes.join(" ")}"`}>
  </div>`;
}

/** Checked by the server, because a form with several submit buttons cannot require it for only one. */
export function checkbox({ name, label, error }: Pick<Field, "name" | "label" | "error">): Html {
  return html`<div class="check">
    ${error !== undefined && html`<p class="error" id="${name}-error">${error}</p>`}
    <input id="${name}" name="${name}" type="checkbox" value="yes" autocomplete="off"
      ${error !== undefined && html`aria-invalid="true" aria-describedby="${name}-error"`}>
    <label for="${name}">${label}</label>
  </div>`;
}

/** Name of the hidden input with the form token. */
export const FORM_TOKEN = "form_token";

export interface Form {
  readonly action: string;
  readonly token: string;
  /** Hidden form values. */
  readonly hidden?: Readonly<Record<string, string | undefined>>;
  readonly label?: string;
  readonly className?: string;
}

export function form({ action, token, hidden = {}, label, className }: Form, content: Content): Html {
  const values = Object.entries({ [FORM_TOKEN]: token, ...hidden }).filter(([, value]) => value !== undefined);
  return html`<form method="post" action="${action}"
    ${label !== undefined && html`aria-label="${label}"`} ${className !== undefined && html`class="${className}"`}>
    ${values.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
    ${content}
  </form>`;
}

export function submit(text: string, kind: "primary" | "plain" | "danger" = "primary"): Html {
  return html`<button class="${kind}">${text}</button>`;
}

/** One of a form's submit buttons. */
export function answer(text: string, value: { readonly name: string; readonly value: string }, kind: string): Html {
  return html`<button class="${kind}" name="${value.name}" value="${value.value}">${text}</button>`;
}

/** Screen readers announce it when the page loads. @param errors shown next to their fields. */
export function failure(text: string | undefined, errors: FormErrors = {}): Content {
  const told = text ?? (Object.keys(errors).length > 0 ? "Something below needs to be corrected." : undefined);
  return told !== undefined && html`<p class="notice failure" role="alert">${told}</p>`;
}

export function success(text: string | undefined): Content {
  return text !== undefined && html`<p class="notice success" role="status">${text}</p>`;
}
