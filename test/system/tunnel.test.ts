import { describe } from "vitest";
import { YamuxTunnel } from "../../packages/control-plane/src/tunnel/yamux-tunnel.ts";
import { socketPair } from "../../packages/daemon/src/tunnel/h2-caller.fixture.ts";
import { tunnelCallContract } from "../../packages/daemon/src/tunnel/tunnel-call.contract.ts";
import { serveTunnel } from "../../packages/daemon/src/tunnel/tunnel-server.ts";
import type { OpenTunnel } from "../../packages/daemon/src/tunnel/tunnel-stage.fixture.ts";

/** Both programs' own ends of a tunnel, joined. */

const LIVENESS = { pingIntervalMs: 10_000, pingTimeoutMs: 10_000 } as const;

const openTunnel: OpenTunnel = async (handler) => {
  const { near, far } = await socketPair();
  const stop = new AbortController();
  const connection = { socket: near, head: Buffer.alloc(0), protocol: "yamux" } as const;
  const served = serveTunnel(connection, { handler, liveness: LIVENESS, signal: stop.signal });
  const tunnel = new YamuxTunnel(far, LIVENESS, () => undefined);
  return {
    open: (request, caller) => tunnel.openStream(request, caller),
    lose: () => far.resetAndDestroy(),
    close: async () => {
      stop.abort();
      tunnel.destroy(new Error("the test is over"));
      await served;
    },
  };
};

describe("over yamux", () => {
  tunnelCallContract(openTunnel);
});
