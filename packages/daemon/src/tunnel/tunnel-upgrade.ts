import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import {
  TUNNEL_PATH,
  TUNNEL_PROTOCOL_HEADER,
  TUNNEL_PROTOCOLS,
  TUNNEL_UPGRADE,
  type TunnelProtocol,
} from "@fairlead/protocol/daemon-link";

export interface UpgradeOptions {
  readonly platformUrl: string;
  readonly nodeId: string;
  readonly token: string;
  readonly certificateAuthority: string | undefined;
  readonly signal: AbortSignal;
}

/** The raw connection, and what of its bytes was read already. */
export interface TunnelSocket {
  readonly socket: Socket;
  readonly head: Buffer;
  /** What the platform host chose to speak. */
  readonly protocol: TunnelProtocol;
}

/** The platform host answered, but not with 101. */
export class UpgradeRefused extends Error {
  override readonly name = "UpgradeRefused";
  readonly status: number;
  readonly retryAfterMs: number;

  constructor(status: number, retryAfterMs: number) {
    super(`the platform host answered ${status}`);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Asks the platform host for a raw connection. @throws UpgradeRefused, or the network's error. */
export function openTunnelSocket(options: UpgradeOptions): Promise<TunnelSocket> {
  const base = options.platformUrl.replace(/\/+$/, "");
  const url = new URL(base + TUNNEL_PATH(options.nodeId));
  const request = url.protocol === "https:" ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const asked = request(url, {
      agent: false,
      signal: options.signal,
      ...(options.certificateAuthority === undefined ? {} : { ca: options.certificateAuthority }),
      headers: {
        connection: "Upgrade",
        upgrade: TUNNEL_UPGRADE,
        [TUNNEL_PROTOCOL_HEADER]: TUNNEL_PROTOCOLS.join(", "),
        authorization: `Bearer ${options.token}`,
      },
    });
    asked.once("upgrade", ({ headers }, socket, head) => {
      const protocol = protocolOf(headers[TUNNEL_PROTOCOL_HEADER]);
      if (headers.upgrade === TUNNEL_UPGRADE && protocol !== undefined) resolve({ socket, head, protocol });
      else {
        socket.destroy();
        reject(new Error("the platform host switched to another protocol"));
      }
    });
    asked.once("response", (answer: IncomingMessage) => {
      answer.destroy();
      reject(new UpgradeRefused(answer.statusCode ?? 0, retryAfterMs(answer.headers)));
    });
    asked.on("error", reject);
    asked.end();
  });
}

/** @param named undefined by platform hosts of former releases. @returns undefined for one that this daemon does not speak */
function protocolOf(named: string | string[] | undefined): TunnelProtocol | undefined {
  return named === undefined ? "h2" : TUNNEL_PROTOCOLS.find((protocol) => protocol === named);
}

/** Seconds or an HTTP date, counted from the answer's own `date`, since this machine's clock may be wrong. */
export function retryAfterMs(headers: IncomingHttpHeaders): number {
  const text = headers["retry-after"];
  if (text === undefined) return 0;
  const seconds = Number(text);
  const ms = Number.isNaN(seconds) ? Date.parse(text) - Date.parse(headers.date ?? "") : seconds * 1000;
  return Number.isFinite(ms) && ms > 0 ? ms : 0;
}
