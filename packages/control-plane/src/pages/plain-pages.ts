import type { DomainError, ErrorCode } from "@fairlead/protocol/errors";
import { type Html, html } from "./html.ts";
import type { Page } from "./layout.ts";

/** Pages that only tell something. Pure. */

export function messagePage(
  title: string,
  message: string,
  link?: { readonly href: string; readonly text: string },
): Page {
  return {
    title,
    body: html`<p>${message}</p>${link !== undefined && html`<p><a class="button plain" href="${link.href}">${link.text}</a></p>`}`,
  };
}

/**
 * On to another site. Not by a redirect: browsers hold a form's redirects against `form-action 'self'`, and what a sign-in
 * provider redirects to next cannot be listed.
 */
export function onwardPage(url: string, to: string): Page {
  refuseScript(url);
  return { title: "One moment", next: url, body: html`<p>You are being taken to ${to}.</p>${goOn(url)}` };
}

function goOn(url: string): Html {
  return html`<p class="stack"><a class="button primary" href="${url}">Continue</a></p>`;
}

function refuseScript(url: string): void {
  if (/^(javascript|data|vbscript):$/.test(new URL(url, "http://own.invalid").protocol))
    throw new Error(`not an address to go to: ${url}`);
}

const ERROR_TITLES: Readonly<Partial<Record<ErrorCode, string>>> = {
  not_found: "This leads nowhere",
  permission_denied: "That was refused",
  invalid_credential: "That did not work",
  already_exists: "That did not work",
  rate_limit_exceeded: "Too many tries",
  unavailable: "Not just now",
  invalid_request: "That did not work",
};

/** @param requestId names the request in the server's log. */
export function errorPage(error: DomainError, requestId: string): Page {
  return {
    title: ERROR_TITLES[error.code] ?? "Something went wrong",
    body: html`<p role="alert">${error.message}</p>
      <p><a class="button plain" href="/">Start again</a></p>
      <p class="soft">Request ${requestId}</p>`,
  };
}
