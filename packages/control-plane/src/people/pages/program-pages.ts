import { answer, checkbox, failure, field, form, submit } from "./html/fields.ts";
import { type Html, html } from "./html/html.ts";
import type { HtmlPage } from "./html/layout.ts";

/** Authorizing programs: the device flow (RFC 8628) and the consent of the authorization code flow. Pure. */

export function deviceCodePage(page: {
  readonly token: string;
  readonly code: string;
  readonly error?: string | undefined;
}): HtmlPage {
  return {
    title: "Connect a device",
    body: html`${failure(undefined, page.error === undefined ? {} : { user_code: page.error })}
      <p>Enter the code that your device or terminal shows.</p>
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

/** Helps users detect a device request started by someone else (RFC 8628 §5.4). */
export interface DeviceApproval {
  /** Also shown on the device. */
  readonly code: string;
  readonly address: string;
  /** As sent by the device. */
  readonly userAgent: string;
  readonly secondsAgo: number;
  /** Whether the request came from this browser's network. */
  readonly sameNetwork: boolean;
  /** The user clicked Allow without confirming that they started the request. */
  readonly unconfirmed: boolean;
}

export interface ProgramRequest {
  readonly token: string;
  /** The form's target. */
  readonly action: string;
  readonly hidden: Readonly<Record<string, string>>;
  /** The client's registered name. */
  readonly client: string;
  readonly scopes: readonly string[];
  readonly email: string;
  /** Absent if the program runs on the same machine as the browser. */
  readonly device?: DeviceApproval | undefined;
  /** Where the browser is redirected with the result. */
  readonly destination?: string | undefined;
}

export function programPage(request: ProgramRequest): HtmlPage {
  const { client, scopes, email, device, destination } = request;
  return {
    title: `Allow ${client} to act as you?`,
    body: html`${device?.unconfirmed === true && failure(undefined, { started: UNCONFIRMED })}
      <p><strong>${client}</strong> requests access as <strong>${email}</strong>. It will have the same access as you
        ${scopes.includes("offline_access") ? "until you sign it out on your account page" : "for the next ten minutes"}.</p>
      ${device !== undefined && deviceCheck(device)}
      ${destination !== undefined && html`<p class="soft">Your decision is sent to ${destination}.</p>`}
      ${form({ action: request.action, token: request.token, hidden: request.hidden }, [
        device !== undefined && startedCheck(device),
        html`<div class="answers">
          ${answer("Allow", { name: "decision", value: "allow" }, "primary")}
          ${answer("Deny", { name: "decision", value: "refuse" }, "plain")}
        </div>`,
      ])}`,
  };
}

const UNCONFIRMED = "Confirm that you started this yourself, or deny it.";

function deviceCheck({ code, address, userAgent, secondsAgo, sameNetwork }: DeviceApproval): Html {
  const where = sameNetwork ? "the same network as this browser" : "a different network than this browser";
  return html`<p>Requested ${ago(secondsAgo)} from ${address}, ${where}. It identifies itself as “${userAgent}”.</p>
    ${!sameNetwork && html`<p class="notice failure">Someone else may have sent you here. If you did not start this on one of your own devices, deny it.</p>`}
    <p>Your device must show this code:</p>
    <p class="code">${code}</p>`;
}

function startedCheck({ unconfirmed }: DeviceApproval): Html {
  return checkbox({
    name: "started",
    label: "I just started this myself, and my device shows this code. No one sent me the code or the link.",
    error: unconfirmed ? UNCONFIRMED : undefined,
  });
}

function ago(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  if (minutes === 0) return "less than a minute ago";
  return minutes === 1 ? "a minute ago" : `${minutes} minutes ago`;
}
