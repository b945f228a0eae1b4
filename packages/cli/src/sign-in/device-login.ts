import { initiateDeviceAuthorization, pollDeviceAuthorizationGrant } from "openid-client";
import { CliError } from "../cli-error.ts";
import { discover, explained, type OAuthServer, readTokens, SCOPE, type Tokens, Unavailable } from "./oauth-client.ts";

/** Device authorization (RFC 8628): the user approves a code in a browser on any machine. */

export interface DeviceLogin {
  /** The page to open, and the code to enter there. */
  readonly url: string;
  readonly code: string;
  /** The page with the code filled in. */
  readonly urlWithCode: string;
  readonly expiresInSeconds: number;
  /** Polls until the code is approved. @throws CliError if it is denied or expires; the signal's reason */
  approved(signal: AbortSignal): Promise<Tokens>;
}

/** @throws CliError */
export async function beginDeviceLogin(server: OAuthServer): Promise<DeviceLogin> {
  const { baseUrl } = server;
  const config = await discover(server);
  const device = await explained(baseUrl, () => initiateDeviceAuthorization(config, { scope: SCOPE }));
  const url = pageAddress(device.verification_uri);
  return {
    url,
    code: device.user_code,
    urlWithCode: device.verification_uri_complete === undefined ? url : pageAddress(device.verification_uri_complete),
    expiresInSeconds: device.expires_in,
    approved: async (signal) => {
      const expired = AbortSignal.timeout(device.expires_in * 1000);
      const either = AbortSignal.any([signal, expired]);
      for (;;) {
        try {
          const poll = explained(baseUrl, () => pollDeviceAuthorizationGrant(config, device, {}, { signal: either }));
          return readTokens(await orAborted(poll, either));
        } catch (error) {
          signal.throwIfAborted();
          if (expired.aborted)
            throw new CliError("The code expired before it was approved. Run `fairlead login` again.");
          // RFC 8628 §3.5: keep polling while the server is unavailable.
          if (!(error instanceof Unavailable)) throw error;
        }
      }
    },
  };
}

/** The client checks the signal only between its waits; Ctrl-C must work during a wait too. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort);
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** The URL is printed and opened in a browser, so only HTTP(S) is accepted. */
function pageAddress(text: string): string {
  const url = URL.parse(text);
  if (url?.protocol === "https:" || url?.protocol === "http:") return url.href;
  throw new CliError("The platform host returned an invalid sign-in URL. Is it Fairlead?");
}
