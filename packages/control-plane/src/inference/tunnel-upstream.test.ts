import type { IncomingHttpHeaders } from "node:http2";
import { TUNNEL_FAULT_HEADER, TUNNEL_WORKLOAD_HEADER } from "@fairlead/protocol/daemon-link";
import type { DomainError } from "@fairlead/protocol/errors";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { FakeNodes, type NodeRequest } from "../testing/fake-node.ts";
import { TunnelHub } from "../tunnel/tunnel-hub.ts";
import { TunnelUpstream } from "./tunnel-upstream.ts";
import { type FarEnd, type UpstreamFixture, upstreamContract } from "./upstream.contract.ts";

interface TunnelFixture extends UpstreamFixture {
  nextRequest(): Promise<NodeRequest>;
}

async function openTunnel(): Promise<TunnelFixture> {
  const hub = new TunnelHub({ log: pino({ level: "silent" }) });
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
    upstream: new TunnelUpstream(tunnel, "engine"),
    nextRequest,
    nextCall: async () => farEnd(await nextRequest()),
    close: () => {
      hub.close();
      nodes.close();
      return Promise.resolve();
    },
  };
}

function farEnd({ stream, headers }: NodeRequest): FarEnd {
  return {
    request: readRequest({ stream, headers }),
    respond: (status, answer) => stream.respond({ ":status": status, ...answer }),
    write: (text) => void stream.write(text),
    end: () => void stream.end(),
    cut: () => void stream.destroy(new Error("cut")),
    get closed() {
      return stream.closed;
    },
  };
}

async function readRequest(
  request: NodeRequest,
): Promise<{ path: string; headers: IncomingHttpHeaders; body: Buffer }> {
  const pieces: Buffer[] = [];
  request.stream.on("data", (piece: Buffer) => pieces.push(piece));
  await new Promise((resolve) => request.stream.once("end", resolve));
  return { path: request.headers[":path"] ?? "", headers: request.headers, body: Buffer.concat(pieces) };
}

upstreamContract("a node's engine behind its tunnel", openTunnel);

describe("a node's engine behind its tunnel", () => {
  const failure = (fixture: TunnelFixture): Promise<DomainError> =>
    new Promise((resolve, reject) => {
      fixture.upstream.dispatch(
        { method: "POST", path: "/", headers: {}, body: [] },
        { onHeaders: reject, onData: () => true, onEnd: reject, onError: resolve },
      );
    });

  test("is asked for by the workload's name", async () => {
    const fixture = await openTunnel();
    const arrived = fixture.nextRequest();
    void failure(fixture);
    expect((await arrived).headers[TUNNEL_WORKLOAD_HEADER]).toBe("engine");
    await fixture.close();
  });

  test.each([
    ["no_running_engine", 503],
    ["upstream_failed", 502],
  ])("never takes the gateway's own answer (%s) for the engine's", async (code, status) => {
    const fixture = await openTunnel();
    const arrived = fixture.nextRequest();
    const error = failure(fixture);
    (await arrived).stream.respond({ ":status": status, [TUNNEL_FAULT_HEADER]: code }, { endStream: true });
    expect((await error).code).toBe(code);
    await fixture.close();
  });

  test("fails when the tunnel is lost before the call", async () => {
    const fixture = await openTunnel();
    await fixture.close();
    expect((await failure(fixture)).code).toBe("upstream_failed");
  });
});
