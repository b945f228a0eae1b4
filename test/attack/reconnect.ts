import { randomUUID } from "node:crypto";
import { PROTOCOL_VERSIONS } from "@fairlead/protocol/daemon-link";
import type { DesiredState } from "@fairlead/protocol/workload";
import { pino } from "pino";
import { createTrpcLink } from "../../packages/daemon/src/link/trpc-link.ts";
import { DAEMON_VERSION } from "../../packages/daemon/src/process/version.ts";
import { openTunnelSocket } from "../../packages/daemon/src/tunnel/tunnel-upgrade.ts";
import type { StageNode } from "./facts.ts";

export interface ReconnectOptions {
  /** Where it connects. */
  readonly platformUrl: string;
  readonly deadlineMs: number;
}

import { HOST_FACTS } from "./host-facts.ts";

const log = pino({ level: "silent" });

/**
 * A daemon's link and tunnel, from the first byte to the first desired state and a heartbeat. It is let in at its first try, or that is
 * a failure. @returns "" or the reason.
 */
export async function reconnectOnce(
  { identity, identityToken: token }: StageNode,
  { platformUrl, deadlineMs }: ReconnectOptions,
): Promise<string> {
  const { nodeId } = identity;
  const ending = new AbortController();
  const signal = AbortSignal.any([ending.signal, AbortSignal.timeout(deadlineMs)]);
  try {
    const { socket } = await openTunnelSocket({ platformUrl, nodeId, token, certificateAuthority: undefined, signal });
    socket.on("error", () => undefined);
    const control = createTrpcLink({
      platformUrl,
      nodeId,
      token: () => Promise.resolve(token),
      onTokenRefused: () => undefined,
      log,
    });
    const link = await control.connect(signal);
    const [bootId, daemonVersion] = [randomUUID(), DAEMON_VERSION];
    await link.hello({ protocolVersions: [...PROTOCOL_VERSIONS], daemonVersion, bootId, host: HOST_FACTS });
    const { epoch, generation } = await new Promise<DesiredState>((resolve, reject) => {
      signal.addEventListener("abort", () => reject(new Error(`not connected within ${deadlineMs} ms`)));
      link.lost.then(reject, reject);
      link.subscribe(resolve);
    });
    await link.heartbeat({ epoch, generation });
    socket.destroy();
    link.close();
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    ending.abort();
  }
}
