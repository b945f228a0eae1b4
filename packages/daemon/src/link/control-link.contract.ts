import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { aDesiredState } from "../testing/builders.ts";
import type { ControlPlaneDouble } from "../testing/fake-control-plane.ts";
import { type ControlLink, type LinkConnection, LinkTakenOver } from "./control-link.ts";

export interface ControlLinkHarness {
  readonly link: ControlLink;
  readonly controlPlane: ControlPlaneDouble;
  readonly close: () => Promise<void>;
}

const host = {
  operatingSystem: "Test 1",
  kernel: "6",
  architecture: "x64",
  hostName: "h",
  cpus: 1,
  memoryMb: 1,
  diskFreeMb: 1,
  dockerVersion: "1",
};
export const aHello = { protocolVersions: [1], daemonVersion: "0.1.0", bootId: "b", host };

/** Contract of control links. */
export function controlLinkContract(start: () => Promise<ControlLinkHarness>): void {
  let harness: ControlLinkHarness;
  let closing: AbortController;
  beforeEach(async () => {
    harness = await start();
    closing = new AbortController();
  });
  afterEach(async () => {
    closing.abort();
    await harness.close();
  });
  const connect = (): Promise<LinkConnection> => harness.link.connect(closing.signal);

  test("calls reach the control plane and return its response", async () => {
    const connection = await connect();
    const { controlPlane } = harness;
    const { heartbeatSeconds, serverTime } = controlPlane;
    expect(await connection.hello(aHello)).toEqual({ protocolVersion: 1, heartbeatSeconds, serverTime });
    expect(await connection.heartbeat({ epoch: "e", generation: 1 })).toEqual({ heartbeatSeconds, serverTime });
    await connection.observe({ epoch: "e", generation: 1, workloadReports: [] });
    await connection.events([{ id: "evt_1", at: "t", kind: "k", workloadId: null, message: "m" }]);
    await connection.goodbye();
    expect(controlPlane.received.goodbyes).toHaveLength(1);
    expect(controlPlane.received).toMatchObject({
      hellos: [aHello],
      heartbeats: [{ generation: 1 }],
      observations: [{ workloadReports: [] }],
      events: [{ id: "evt_1" }],
    });
  });

  test("a secret arrives as it was sealed, and a name without a secret is missing", async () => {
    const { controlPlane } = harness;
    const sealed = { state: "sealed", version: "1.a", jwe: `e.${"x".repeat(90_000)}` } as const;
    controlPlane.secrets.set("TOKEN", sealed).set("OLD", { state: "stale" });
    const connection = await connect();
    expect(await connection.secret({ name: "TOKEN" })).toEqual(sealed);
    expect(await connection.secret({ name: "OLD" })).toEqual({ state: "stale" });
    expect(await connection.secret({ name: "NONE" })).toEqual({ state: "missing" });
  });

  test("a workload's token arrives with its lifetime, and a workload without a token has none", async () => {
    const issued = { state: "issued", token: "e.y.x", expiresIn: 3600 } as const;
    harness.controlPlane.workerTokens.set("agt_1", issued);
    const connection = await connect();
    expect(await connection.workerToken({ workloadId: "agt_1" })).toEqual(issued);
    expect(await connection.workerToken({ workloadId: "agt_2" })).toEqual({ state: "none" });
  });

  test("a subscriber receives the current state immediately, and every later one", async () => {
    harness.controlPlane.push(aDesiredState({ generation: 1 }));
    const connection = await connect();
    const seen: number[] = [];
    connection.subscribe((state) => seen.push(state.generation));
    await vi.waitFor(() => expect(seen).toEqual([1]));
    harness.controlPlane.push(aDesiredState({ generation: 2 }));
    await vi.waitFor(() => expect(seen).toEqual([1, 2]));
  });

  test("subscribing again requests the whole state again, without losing the connection", async () => {
    harness.controlPlane.push(aDesiredState({ generation: 1 }));
    const connection = await connect();
    const seen: number[] = [];
    connection.subscribe((state) => seen.push(state.generation));
    await vi.waitFor(() => expect(seen).toEqual([1]));
    connection.subscribe((state) => seen.push(state.generation * 10));
    await vi.waitFor(() => expect(seen).toEqual([1, 10]));
    harness.controlPlane.push(aDesiredState({ generation: 2 }));
    await vi.waitFor(() => expect(seen).toEqual([1, 10, 20]));
    await connection.heartbeat({ epoch: "e", generation: 2 });
  });

  test("a refusal carries its status and the time to wait", async () => {
    harness.controlPlane.refuseNext(503, 7);
    await expect(connect()).rejects.toMatchObject({ name: "LinkRefused", status: 503, retryAfterMs: 7000 });
    harness.controlPlane.refuseNext(401, null);
    await expect(connect()).rejects.toMatchObject({ name: "LinkRefused", status: 401, retryAfterMs: null });
    await connect();
  });

  test("a call that fails at the control plane is reported, and the connection stays open", async () => {
    const connection = await connect();
    harness.controlPlane.failNextCall();
    await expect(connection.heartbeat({ epoch: "e", generation: 1 })).rejects.toThrow();
    await connection.heartbeat({ epoch: "e", generation: 1 });
  });

  test("a dropped link is reported as lost, and its calls fail", async () => {
    const connection = await connect();
    await connection.heartbeat({ epoch: "e", generation: 1 });
    harness.controlPlane.drop();
    expect(await connection.lost).toBeInstanceOf(Error);
    await expect(connection.heartbeat({ epoch: "e", generation: 1 })).rejects.toThrow();
  });

  test("a link that another daemon has taken over is reported as such", async () => {
    const connection = await connect();
    await connection.heartbeat({ epoch: "e", generation: 1 });
    harness.controlPlane.takeOver();
    expect(await connection.lost).toBeInstanceOf(LinkTakenOver);
  });

  test("closing ends the connection from this side", async () => {
    const connection = await connect();
    connection.close();
    await connection.lost;
    closing.abort();
    await expect(connect()).rejects.toThrow();
  });
}
