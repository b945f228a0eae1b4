import { answer, failure, field, form, submit } from "./fields.ts";
import { type Html, html } from "./html.ts";
import type { Page } from "./layout.ts";

/** Letting a program act for somebody: the device flow (RFC 8628) and the consent of the authorization code flow. Pure. */

export function deviceCodePage(page: {
  readonly token: string;
  readonly code: string;
  readonly error?: string | undefined;
}): Page {
  return {
    title: "Connect a device",
    body: html`${failure(undefined, page.error === undefined ? {} : { user_code: page.error })}
      <p>Type the code that your device or command line shows.</p>
      ${form({ action: "/device", token: page.token, className: "stack" }, [
        field({
          name: "user_code",
          label: "Code",
          type: "text",
          autocomplete: "off",
          value: page.code,
          error: page.error,
          first: true,
          code: true,
        }),
        submit("Continue"),
      ])}`,
  };
}

export interface ProgramRequest {
  readonly token: string;
  /** Where the answer goes. */
  readonly action: string;
  readonly hidden: Readonly<Record<string, string>>;
  /** The client's registered name. */
  readonly client: string;
  readonly scopes: readonly string[];
  readonly email: string;
  /** Shown on the device too, so that people see whether it is theirs. */
  readonly code?: string | undefined;
  /** Where the browser goes on to, with the answer. */
  readonly destination?: string | undefined;
}

export function programPage(request: ProgramRequest): Page {
  const { client, scopes, email, code, destination } = request;
  return {
    title: `Let ${client} act as you?`,
    body: html`<p><strong>${client}</strong> asks to act as <strong>${email}</strong>. It may then do here all that you may,
        ${scopes.includes("offline_access") ? "until you sign it out on your account page" : "for the next ten minutes"}.</p>
      ${code !== undefined && codeCheck(code)}
      ${destination !== undefined && html`<p class="soft">Your answer is sent to ${destination}.</p>`}
      ${form({ action: request.action, token: request.token, hidden: request.hidden }, [
        html`<div class="answers">
          ${answer("Allow", { name: "decision", value: "allow" }, "primary")}
          ${answer("Refuse", { name: "decision", value: "refuse" }, "plain")}
        </div>`,
      ])}`,
  };
}

function codeCheck(code: string): Html {
  return html`<p>Allow it only if you started this yourself, just now, and your device shows this code:</p>
    <p class="code">${code}</p>`;
}
