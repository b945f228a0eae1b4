import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { TLSSocket } from "node:tls";
import type { Clock } from "@fairlead/protocol/values/clock";
import { connectionVia } from "@fairlead/wire/proxy/proxy-connect";
import type { ProxyServer } from "@fairlead/wire/proxy/proxy-rules";
import { reservePort, urlOf } from "../../http/listening/listen.ts";
import type { Config } from "../config/config.ts";
import { StartError } from "../process/start-error.ts";
import { type DoctorFinding, fail, ok, skipped, warn } from "./finding.ts";

/** Doctor checks of the two hosts, from this machine. */

const ANSWER_MS = 10_000;
const MAX_SKEW_MS = 30_000;
const DAY_MS = 24 * 3_600_000;
const CERTIFICATE_DAYS = 14;

export type HostName = "platform" | "inference";

/** A running server's hosts must respond; otherwise their ports must be free. */
export async function checkPort({ server }: Config, host: HostName, runs: boolean): Promise<DoctorFinding> {
  const check = `${host} host`;
  const { host: address, port } = server[host];
  if (port === 0) return skipped(check, "uses any free port");
  if (!runs) {
    try {
      await (await reservePort({ host: address, port, setting: `server.${host}.port` })).release();
      return ok(check, `the server is not running, and port ${port} is free`);
    } catch (error) {
      if (error instanceof StartError) return fail(check, error.message);
      throw error;
    }
  }
  const url = `${urlOf(address, port, server.tls === undefined ? "http" : "https")}/readyz`;
  // The certificate is for the public name, not for the machine's address.
  const { status } = await ask(url, { anyCertificate: true, proxy: null });
  return status === 200 ? ok(check, `${url} responds`) : fail(check, `${url} returned ${status}; see the server's log`);
}

/** Like an external client, including DNS, proxy and certificate. */
export async function checkPublicUrl(config: Config, host: HostName, clock: Clock): Promise<DoctorFinding> {
  const setting = host === "platform" ? "publicUrl" : "modelsUrl";
  const url = config.server[setting];
  const check = `server.${setting}`;
  if (url === null) return skipped(check, "not set");
  const address = `${url}/healthz`;
  const proxy = config.proxy.rules.find(new URL(address));
  const { status, date, certificateUntil } = await ask(address, { anyCertificate: false, proxy });
  if (status !== 200)
    return fail(check, `${url}/healthz returned ${status}; check that the proxy forwards to the ${host} host`);
  const left = certificateUntil === null ? null : Math.floor((certificateUntil - clock.now()) / DAY_MS);
  if (left !== null && left < CERTIFICATE_DAYS)
    return warn(check, `${url} responds; its certificate expires in ${left} days`);
  const skew = date === null ? 0 : Math.abs(date - clock.now());
  if (skew > MAX_SKEW_MS)
    return warn(check, `${url} responds, but its clock differs from this machine's by ${Math.round(skew / 1000)} s`);
  return ok(check, `${url} responds`);
}

interface Answer {
  readonly status: number;
  /** Unix milliseconds, from the response. */
  readonly date: number | null;
  readonly certificateUntil: number | null;
}

interface Way {
  readonly anyCertificate: boolean;
  readonly proxy: ProxyServer | null;
}

function ask(url: string, { anyCertificate, proxy }: Way): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const connection = proxy === null ? { agent: false } : connectionVia(proxy, new URL(url));
  const options = { ...connection, timeout: ANSWER_MS, rejectUnauthorized: !anyCertificate };
  const call = (url.startsWith("https:") ? httpsRequest : httpRequest)(url, options, (response) => {
    response.resume();
    const { socket, statusCode = 0, headers } = response;
    const until = socket instanceof TLSSocket ? Date.parse(socket.getPeerCertificate().valid_to) : Number.NaN;
    const date = Date.parse(headers.date ?? "");
    resolve({ status: statusCode, date: orNull(date), certificateUntil: orNull(until) });
  });
  call.on("timeout", () => call.destroy(new Error("no response within 10 seconds")));
  call.on("error", (error) => reject(new Error(`${url} cannot be reached: ${error.message}`)));
  call.end();
  return promise;
}

function orNull(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}
