import { initiateDeviceAuthorization, pollDeviceAuthorizationGrant } from "openid-client";
import { CliError } from "../cli-error.ts";
import { discover, explained, type OAuthServer, readTokens, SCOPE, type Tokens, Unavailable } from "./oauth-client.ts";

/** Device authorization (RFC 8628): a browser on any machine approves a code that is shown here. */

export interface DeviceLogin {
  /** The page to open, and the code to enter there. */
  readonly url: string;
  readonly code: string;
  /** The page with the code filled in already. */
  readonly urlWithCode: string;
  readonly expiresInSeconds: number;
  /** Asks until somebody decides. @throws CliError when the code is refused or runs out; the signal's own reason */
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
            throw new CliError("The code ran out before anybody approved it. Run `fairlead login` again.");
          // RFC 8628 §3.5: a server that is away for a moment has not decided anything.
          if (!(error instanceof Unavailable)) throw error;
        }
      }
    },
  };
}

/** The client looks at the signal between its waits alone; nobody who presses Ctrl-C should wait for those. */
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

/** The page goes to a browser and to the screen, so it must be a web address and nothing else. */
function pageAddress(text: string): string {
  const url = URL.parse(text);
  if (url?.protocol === "https:" || url?.protocol === "http:") return url.href;
  throw new CliError("The platform host named a sign-in page that is no web address. Is it Fairlead?");
}
