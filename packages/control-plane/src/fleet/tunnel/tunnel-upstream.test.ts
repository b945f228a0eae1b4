import { TunnelUpstream } from "@fairlead/inference/upstreams/tunnel-upstream";
import { type FarEnd, type UpstreamFixture, upstreamContract } from "@fairlead/inference/upstreams/upstream.contract";
import { TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import type { DomainError } from "@fairlead/protocol/errors";
import { systemClock } from "@fairlead/protocol/values/clock";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { FakeNodes } from "./testing/fake-node.ts";
import type { NodeRequest } from "./testing/node-request.ts";
import { TunnelHub } from "./tunnel-hub.ts";

interface TunnelFixture extends UpstreamFixture {
  nextRequest(): Promise<NodeRequest>;
}

async function openTunnel(): Promise<TunnelFixture> {
  const hub = new TunnelHub({ log: pino({ level: "silent" }), clock: systemClock, bounds: new BoundCounters() });
  const nodes = new FakeNodes(hub);
  await nodes.listen();
  const node = await nodes.connect("node");
  const tunnel = hub.get("node");
  if (tunnel === null) throw new Error("no tunnel");
  const nextRequest = (): Promise<NodeRequest> =>
    new Promise((resolve) => {
      node.onRequest = resolve;
    });
  return {
    upstream: new TunnelUpstream(tunnel, { workload: "engine", identifier: "box" }),
    nextRequest,
    nextCall: async () => farEnd(await nextRequest()),
    close: () => {
      hub.close();
      nodes.close();
      return Promise.resolve();
    },
  };
}

function farEnd(request: NodeRequest): FarEnd {
  const { path, headers } = request;
  return {
    request: request.takeBody().then((body) => ({ path, headers, body })),
    respond: (status, answer) => request.respond(status, answer),
    write: (text) => void request.write(text),
    end: () => request.end(),
    cut: () => request.cut(),
    get closed() {
      return request.isClosed;
    },
  };
}

describe("a node's engine behind its tunnel", () => {
  upstreamContract("that", openTunnel);

  const failure = (fixture: TunnelFixture): Promise<DomainError> =>
    new Promise((resolve, reject) => {
      fixture.upstream.dispatch(
        { method: "POST", path: "/", headers: {}, body: [] },
        { onHeaders: reject, onData: () => true, onEnd: reject, onError: resolve },
      );
    });

  test("is called by the workload's name", async () => {
    const fixture = await openTunnel();
    const arrived = fixture.nextRequest();
    void failure(fixture);
    expect((await arrived).workload).toBe("engine");
    await fixture.close();
  });

  test.each([
    ["no_running_engine", 503],
    ["upstream_failed", 502],
  ])("is not mistaken for the source of the gateway's own response (%s)", async (code, status) => {
    const fixture = await openTunnel();
    const arrived = fixture.nextRequest();
    const error = failure(fixture);
    const request = await arrived;
    request.respond(status, { [TUNNEL_FAULT_HEADER]: code });
    request.end();
    expect((await error).code).toBe(code);
    await fixture.close();
  });

  test("fails a call if the tunnel is lost before it", async () => {
    const fixture = await openTunnel();
    await fixture.close();
    expect((await failure(fixture)).code).toBe("upstream_failed");
  });
});
