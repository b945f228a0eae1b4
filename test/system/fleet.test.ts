import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { FleetStage } from "../support/fleet-stage.ts";
import { SimulatedDaemon } from "../support/simulated-daemon.ts";
import { waitFor } from "../support/wait-for.ts";

const NODES = 200;
const CONNECTS_PER_SECOND = 25;
const PATIENCE_MS = 40_000;
/** Heartbeats every second, and three of them missed. */
const GRACE_MS = 3000;
const PUT_OFF = 'fairlead_daemon_upgrades_put_off_total{of="links"}';

const seenNode = z.object({ lastSeenAt: z.string() });

let stage: FleetStage;
const daemons: SimulatedDaemon[] = [];

const run = (from: number, to: number): void => {
  for (const node of stage.nodes.slice(from, to)) daemons.push(new SimulatedDaemon(node, { tunnel: true }));
};
const cut = async (count: number): Promise<void> => {
  await Promise.all(daemons.splice(-count).map((daemon) => daemon.close()));
};
const areBack = async (): Promise<boolean> => daemons.every(({ isLive, hasTunnel }) => isLive && hasTunnel);
const allActive = async (): Promise<boolean> => (await stage.nodesIn("active")) === NODES;

async function eventsOf(count: number): Promise<unknown[]> {
  const ids = stage.nodes.slice(0, count).map(({ identity }) => identity.nodeId);
  return Promise.all(ids.map((id) => stage.call("GET", `/v1/nodes/${id}/events`)));
}

/** Milliseconds since the server has heard the node. */
async function silenceOf(nodeId: string): Promise<number> {
  const { lastSeenAt } = seenNode.parse(await stage.call("GET", `/v1/nodes/${nodeId}`));
  return Date.now() - Date.parse(lastSeenAt);
}

beforeAll(async () => {
  const fleet = { minHeartbeatSeconds: 1, heartbeatsPerSecond: 1000, connectsPerSecond: CONNECTS_PER_SECOND };
  stage = await FleetStage.start({ nodes: NODES, settings: { fleet, log: { level: "warn" } } });
  run(0, NODES);
  await waitFor("the whole fleet to be active", PATIENCE_MS, allActive);
  await waitFor("every link and tunnel", PATIENCE_MS, areBack);
});
afterAll(async () => {
  await cut(daemons.length);
  await stage.remove();
});

test("a fleet that connects all at once is admitted at the set rate; the rest wait and return (jenkinsci/swarm-plugin#163)", async () => {
  expect(await stage.figure(PUT_OFF)).toBeGreaterThan(0);
  expect(await stage.figure("fairlead_daemon_links_open")).toBe(NODES);
  expect(await stage.figure("fairlead_tunnels_open")).toBe(NODES);
});

test("a server restart makes no node unreachable, fails no readiness check and adds no event (elastic-agent#13874)", async () => {
  const before = await eventsOf(10);
  const linksBefore = daemons.map(({ links }) => links);
  await stage.server.stop();
  await stage.startServer();
  const unreachable: number[] = [];
  await waitFor("the fleet to be back", PATIENCE_MS, async () => {
    expect(await stage.isReady()).toBe(true);
    unreachable.push(await stage.nodesIn("unreachable"));
    return areBack();
  });
  expect(new Set(unreachable)).toEqual(new Set([0]));
  expect(await stage.nodesIn("active")).toBe(NODES);
  expect(await eventsOf(10)).toEqual(before);
  for (const [n, { links }] of daemons.entries()) expect(links).toBeGreaterThan(linksBefore[n] ?? 0);
});

test("most nodes going silent does not make them unreachable, and the brake is reported until they return (gpustack#5935)", async () => {
  const before = await eventsOf(10);
  await cut(NODES - 10);
  await waitFor("the brake", PATIENCE_MS, async () => (await stage.figure("fairlead_fleet_brake")) === 1);
  // Without the brake they were gone by then.
  const { nodeId } = stage.nodes[NODES - 1]?.identity ?? { nodeId: "" };
  await waitFor("their grace to be over", PATIENCE_MS, async () => (await silenceOf(nodeId)) > GRACE_MS * 2);
  expect(await stage.nodesIn("unreachable")).toBe(0);
  expect(await stage.figure("fairlead_fleet_nodes_overdue")).toBeGreaterThan(NODES / 2);
  run(10, NODES);
  await waitFor("the brake to clear", PATIENCE_MS, async () => (await stage.figure("fairlead_fleet_brake")) === 0);
  await waitFor("every link and tunnel", PATIENCE_MS, areBack);
  expect(await stage.nodesIn("active")).toBe(NODES);
  expect(await eventsOf(10)).toEqual(before);
});

test("a few nodes that go silent become unreachable, and active again when they return", async () => {
  await cut(5);
  await waitFor("five to be lost", PATIENCE_MS, async () => (await stage.nodesIn("unreachable")) === 5);
  expect(await stage.figure("fairlead_fleet_brake")).toBe(0);
  run(NODES - 5, NODES);
  await waitFor("all to be active", PATIENCE_MS, allActive);
});

test("heartbeats reach the store in batches of many nodes, one write per check", async () => {
  const [beats, writes, nodes] = await Promise.all(
    [
      "fairlead_heartbeats_total",
      "fairlead_fleet_heartbeat_batch_nodes_count",
      "fairlead_fleet_heartbeat_batch_nodes_sum",
    ].map((series) => stage.figure(series)),
  );
  expect(beats).toBeGreaterThan(NODES);
  expect((nodes ?? 0) / (writes ?? 0)).toBeGreaterThan(NODES / 10);
});
