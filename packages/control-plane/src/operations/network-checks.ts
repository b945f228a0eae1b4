import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { TLSSocket } from "node:tls";
import type { Clock } from "@fairlead/protocol/clock";
import type { Config } from "../config.ts";
import { reservePort, urlOf } from "../http/listen.ts";
import { StartError } from "../start-error.ts";
import { type Finding, fail, ok, skipped, warn } from "./finding.ts";

/** What the doctor sees of the two hosts, from this machine. */

const ANSWER_MS = 10_000;
const MAX_SKEW_MS = 30_000;
const DAY_MS = 24 * 3_600_000;
const CERTIFICATE_DAYS = 14;

export type HostName = "platform" | "inference";

/** Where the server runs its hosts must answer; else their ports must be free. */
export async function checkPort({ server }: Config, host: HostName, runs: boolean): Promise<Finding> {
  const check = `${host} host`;
  const { host: address, port } = server[host];
  if (port === 0) return skipped(check, "it takes any free port");
  if (!runs) {
    try {
      await (await reservePort({ host: address, port, setting: `server.${host}.port` })).release();
      return ok(check, `the server does not run, and port ${port} is free for it`);
    } catch (error) {
      if (error instanceof StartError) return fail(check, error.message);
      throw error;
    }
  }
  const url = `${urlOf(address, port, server.tls === undefined ? "http" : "https")}/readyz`;
  // The certificate is for the public name, and this is the machine's own address.
  const { status } = await ask(url, { anyCertificate: true });
  return status === 200 ? ok(check, `${url} answers`) : fail(check, `${url} answers ${status}; see the server's log`);
}

/** From here as from outside: name, proxy and certificate too. */
export async function checkPublicUrl(config: Config, host: HostName, clock: Clock): Promise<Finding> {
  const setting = host === "platform" ? "publicUrl" : "modelsUrl";
  const url = config.server[setting];
  const check = `server.${setting}`;
  if (url === null) return skipped(check, "not set");
  const { status, date, certificateUntil } = await ask(`${url}/healthz`, { anyCertificate: false });
  if (status !== 200) return fail(check, `${url}/healthz answers ${status}: does the proxy lead to the ${host} host?`);
  const left = certificateUntil === null ? null : Math.floor((certificateUntil - clock.now()) / DAY_MS);
  if (left !== null && left < CERTIFICATE_DAYS)
    return warn(check, `${url} answers; its certificate has ${left} days left`);
  const skew = date === null ? 0 : Math.abs(date - clock.now());
  if (skew > MAX_SKEW_MS) return warn(check, `${url} answers, but its clock is ${Math.round(skew / 1000)} s off ours`);
  return ok(check, `${url} answers`);
}

interface Answer {
  readonly status: number;
  /** Unix milliseconds, by whoever answered. */
  readonly date: number | null;
  readonly certificateUntil: number | null;
}

function ask(url: string, { anyCertificate }: { readonly anyCertificate: boolean }): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const options = { agent: false, timeout: ANSWER_MS, rejectUnauthorized: !anyCertificate } as const;
  const call = (url.startsWith("https:") ? httpsRequest : httpRequest)(url, options, (response) => {
    response.resume();
    const { socket, statusCode = 0, headers } = response;
    const until = socket instanceof TLSSocket ? Date.parse(socket.getPeerCertificate().valid_to) : Number.NaN;
    const date = Date.parse(headers.date ?? "");
    resolve({ status: statusCode, date: orNull(date), certificateUntil: orNull(until) });
  });
  call.on("timeout", () => call.destroy(new Error("no answer within 10 seconds")));
  call.on("error", (error) => reject(new Error(`${url} cannot be reached: ${error.message}`)));
  call.end();
  return promise;
}

function orNull(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}
