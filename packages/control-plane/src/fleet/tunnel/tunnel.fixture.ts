import type { IncomingHttpHeaders } from "node:http";
import { systemClock } from "@fairlead/protocol/values/clock";
import type { StreamTransport, TunnelStreamHandler } from "@fairlead/wire/tunnel-transport";
import { pino } from "pino";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { type FakeNode, FakeNodes } from "./testing/fake-node.ts";
import type { NodeRequest } from "./testing/node-request.ts";
import { TunnelHub } from "./tunnel-hub.ts";

/** What a call was told, in order. */
export class CallLog implements TunnelStreamHandler {
  readonly told: string[] = [];
  headers: IncomingHttpHeaders = {};
  takes = true;

  onHeaders(status: number, headers: IncomingHttpHeaders): void {
    this.headers = headers;
    this.told.push(String(status));
  }

  onData(chunk: Buffer): boolean {
    this.told.push(chunk.toString());
    return this.takes;
  }

  onDrain(): void {
    this.told.push("drain");
  }

  onEnd(): void {
    this.told.push("end");
  }

  onError(error: Error): void {
    this.told.push(`failed: ${error.message}`);
  }

  /** Without the drains, which come when they may. */
  get text(): string {
    return this.told.filter((one) => one !== "drain").join("|");
  }
}

export interface OpenTunnel {
  readonly hub: TunnelHub;
  readonly nodes: FakeNodes;
  readonly node: FakeNode;
  readonly tunnel: StreamTransport;
  nextRequest(): Promise<NodeRequest>;
  close(): void;
}

/** A hub with one node. */
export async function openTunnel(): Promise<OpenTunnel> {
  const hub = new TunnelHub({ log: pino({ level: "silent" }), clock: systemClock, bounds: new BoundCounters() });
  const nodes = new FakeNodes(hub);
  await nodes.listen();
  const node = await nodes.connect("a");
  const tunnel = hub.get("a");
  if (tunnel === null) throw new Error("no tunnel");
  return {
    hub,
    nodes,
    node,
    tunnel,
    nextRequest: () =>
      new Promise((resolve) => {
        node.onRequest = resolve;
      }),
    close: () => {
      hub.close();
      nodes.close();
    },
  };
}
