import { describe } from "vitest";
import { YamuxTunnel } from "../../packages/control-plane/src/fleet/tunnel/yamux-tunnel.ts";
import { BoundCounters } from "../../packages/control-plane/src/telemetry/bounds/bound-counters.ts";
import { tunnelCallContract } from "../../packages/daemon/src/tunnel/tunnel-call.contract.ts";
import { serveTunnel } from "../../packages/daemon/src/tunnel/tunnel-server.ts";
import type { OpenTunnel } from "../../packages/daemon/src/tunnel/tunnel-stage.fixture.ts";
import { socketPair } from "../../packages/daemon/src/tunnel/yamux-caller.fixture.ts";
import { systemClock } from "../../packages/protocol/src/values/clock.ts";

/** Both programs' own ends of a tunnel, joined. */

const LIVENESS = { pingIntervalMs: 10_000, pingTimeoutMs: 10_000 } as const;

const openTunnel: OpenTunnel = async (handler) => {
  const { near, far } = await socketPair();
  const stop = new AbortController();
  const connection = { socket: near, head: Buffer.alloc(0) };
  const served = serveTunnel(connection, { handler, clock: systemClock, liveness: LIVENESS, signal: stop.signal });
  const tunnel = new YamuxTunnel(
    far,
    { liveness: LIVENESS, clock: systemClock, bounds: new BoundCounters() },
    () => undefined,
  );
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

describe("a tunnel between both programs", () => {
  tunnelCallContract(openTunnel);
});
