import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { TUNNEL_PATH, TUNNEL_UPGRADE } from "@fairlead/protocol/daemon-link";
import { urlBelow } from "@fairlead/protocol/values/url";
import { NO_PROXIES, type ProxyRules } from "@fairlead/wire/proxy/proxy-rules";
import { connectionOf } from "../link/http-client.ts";

export interface UpgradeOptions {
  readonly platformUrl: string;
  readonly nodeId: string;
  readonly token: string;
  readonly certificateAuthority?: string | undefined;
  readonly proxies?: Pick<ProxyRules, "find">;
  readonly signal: AbortSignal;
}

/** The raw connection and the bytes already read from it. */
export interface TunnelSocket {
  readonly socket: Socket;
  readonly head: Buffer;
}

/** The platform host did not return 101. */
export class UpgradeRefused extends Error {
  override readonly name = "UpgradeRefused";
  readonly status: number;
  readonly retryAfterMs: number;

  constructor(status: number, retryAfterMs: number) {
    super(`the platform host returned ${status}`);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Opens a raw connection to the platform host. @throws UpgradeRefused, or a network error. */
export function openTunnelSocket(options: UpgradeOptions): Promise<TunnelSocket> {
  const { certificateAuthority: ca, proxies = NO_PROXIES } = options;
  const url = new URL(urlBelow(options.platformUrl, TUNNEL_PATH(options.nodeId)));
  const request = url.protocol === "https:" ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const asked = request(url, {
      ...connectionOf(url, proxies, ca === undefined ? {} : { ca }),
      signal: options.signal,
      headers: {
        connection: "Upgrade",
        upgrade: TUNNEL_UPGRADE,
        authorization: `Bearer ${options.token}`,
      },
    });
    asked.once("upgrade", ({ headers }, socket, head) => {
      if (headers.upgrade === TUNNEL_UPGRADE) resolve({ socket, head });
      else {
        socket.destroy();
        reject(new Error("the platform host switched to an unexpected protocol"));
      }
    });
    asked.once("response", (answer: IncomingMessage) => {
      answer.destroy();
      reject(new UpgradeRefused(answer.statusCode ?? 0, upgradeRetryMs(answer.headers)));
    });
    asked.on("error", reject);
    asked.end();
  });
}

/** Seconds or an HTTP date, relative to the response's `date`, because this machine's clock may be wrong. */
export function upgradeRetryMs(headers: IncomingHttpHeaders): number {
  const text = headers["retry-after"];
  if (text === undefined) return 0;
  const seconds = Number(text);
  const ms = Number.isNaN(seconds) ? Date.parse(text) - Date.parse(headers.date ?? "") : seconds * 1000;
  return Number.isFinite(ms) && ms > 0 ? ms : 0;
}
