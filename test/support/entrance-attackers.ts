import { type Agent, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { LINK_PATH, TUNNEL_PATH, TUNNEL_UPGRADE } from "@fairlead/protocol/daemon-link";
import { WebSocket } from "ws";
import type { SimulatedNode } from "./simulated-daemon.ts";

/** Where attackers come from and what they aim at. */
export interface AttackOptions {
  readonly platformUrl: string;
  /** Source addresses, used in turn. */
  readonly from: readonly string[];
}

export interface Attack {
  /** How many connections or requests were made so far. */
  readonly made: number;
  stop(): Promise<void>;
}

/** How soon a closed link is opened again. */
const AGAIN_MS = 1000;
/** A token that looks like one of ours: the signature alone tells. */
const FORGED = `${encode({ alg: "EdDSA", typ: "JWT" })}.${encode({ aud: "node", sub: "nod_1" })}.${"A".repeat(86)}`;

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

/** Upgrades of both doors without a credential that is worth anything. */
export function floodUpgrades(options: AttackOptions & { readonly perSecond: number }): Attack {
  const { platformUrl, from, perSecond } = options;
  const url = new URL(platformUrl);
  const stopping = new AbortController();
  let made = 0;
  const attempt = (): void => {
    const isLink = made % 2 === 0;
    const call = request({
      host: url.hostname,
      port: url.port,
      path: isLink ? LINK_PATH("nod_1") : TUNNEL_PATH("nod_1"),
      localAddress: from[made % from.length],
      agent: false as unknown as Agent,
      headers: {
        connection: "Upgrade",
        upgrade: isLink ? "websocket" : TUNNEL_UPGRADE,
        ...(made % 3 === 0 ? {} : { authorization: `Bearer ${FORGED}` }),
      },
    });
    made += 1;
    call.on("error", () => undefined);
    call.on("response", (response) => response.resume());
    call.on("upgrade", (_response, socket) => socket.destroy());
    call.end();
  };
  const run = async (): Promise<void> => {
    const batch = Math.max(1, Math.round(perSecond / 20));
    while (!stopping.signal.aborted) {
      for (let n = 0; n < batch; n++) attempt();
      await delay(50);
    }
  };
  const running = run();
  return {
    get made() {
      return made;
    },
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

/** Links of one enrolled node that never say hello, and respond to every ping; each that is closed or refused is opened again. */
export function holdSilentLinks(node: SimulatedNode, options: AttackOptions & { readonly links: number }): Attack {
  const { platformUrl, from, links } = options;
  const url = new URL(LINK_PATH(node.identity.nodeId), platformUrl.replace(/^http/, "ws"));
  const open = new Set<WebSocket>();
  let stopped = false;
  let made = 0;
  const hold = (): void => {
    if (stopped) return;
    const localAddress = from[made % from.length] ?? "127.0.0.1";
    const headers = { authorization: `Bearer ${node.identityToken}` };
    const socket = new WebSocket(url, { headers, localAddress });
    made += 1;
    open.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => {
      open.delete(socket);
      setTimeout(hold, AGAIN_MS);
    });
  };
  for (let n = 0; n < links; n++) hold();
  return {
    get made() {
      return made;
    },
    stop: async () => {
      stopped = true;
      for (const socket of open) socket.terminate();
    },
  };
}
