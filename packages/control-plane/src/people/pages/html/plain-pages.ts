import type { DomainError, ErrorCode } from "@fairlead/protocol/errors";
import { type Html, html } from "./html.ts";
import type { HtmlPage } from "./layout.ts";

/** Pages with a message. Pure. */

export function messagePage(
  title: string,
  message: string,
  link?: { readonly href: string; readonly text: string },
): HtmlPage {
  return {
    title,
    body: html`<p>${message}</p>${link !== undefined && html`<p><a class="button plain" href="${link.href}">${link.text}</a></p>`}`,
  };
}

/**
 * Leaves for another site. Not with a redirect: browsers apply `form-action 'self'` to redirects after forms, and the targets of sign-in
 * providers cannot be listed.
 */
export function onwardPage(url: string, to: string): HtmlPage {
  refuseScript(url);
  return { title: "One moment", next: url, body: html`<p>Redirecting to ${to}.</p>${goOn(url)}` };
}

function goOn(url: string): Html {
  return html`<p class="stack"><a class="button primary" href="${url}">Continue</a></p>`;
}

function refuseScript(url: string): void {
  if (/^(javascript|data|vbscript):$/.test(new URL(url, "http://own.invalid").protocol))
    throw new Error(`not an address to go to: ${url}`);
}

const ERROR_TITLES: Readonly<Partial<Record<ErrorCode, string>>> = {
  not_found: "This link does not work",
  permission_denied: "Access denied",
  invalid_credential: "That did not work",
  already_exists: "That did not work",
  rate_limit_exceeded: "Too many attempts",
  unavailable: "Temporarily unavailable",
  invalid_request: "That did not work",
};

/** @param requestId identifies the request in the server's log. */
export function errorPage(error: DomainError, requestId: string): HtmlPage {
  return {
    title: ERROR_TITLES[error.code] ?? "Something went wrong",
    body: html`<p role="alert">${error.message}</p>
      <p><a class="button plain" href="/">Start again</a></p>
      <p class="soft">Request ID: ${requestId}</p>`,
  };
}
