import { afterEach, expect, test } from "vitest";
import { type Attack, floodUpgrades, holdSilentLinks } from "../support/entrance-attackers.ts";
import { FleetStage } from "../support/fleet-stage.ts";
import { SimulatedDaemon } from "../support/simulated-daemon.ts";
import { waitFor } from "../support/wait-for.ts";

/** The short form of `test/drills/entrance.test.ts`. */

const DAEMONS = 50;
const CONNECTS_PER_SECOND = 20;
const PATIENCE_MS = 60_000;
/** As many as the server lets wait for the response to their hello, and some more. */
const SILENT_LINKS = 250;
const DAEMONS_ADDRESS = "127.0.0.1";

let stage: FleetStage | null = null;
const daemons: SimulatedDaemon[] = [];
const attacks: Attack[] = [];

afterEach(async () => {
  await Promise.all(attacks.splice(0).map((attack) => attack.stop()));
  await Promise.all(daemons.splice(0).map((daemon) => daemon.close()));
  await stage?.remove();
});

const areBack = async (): Promise<boolean> => daemons.every(({ isLive, hasTunnel }) => isLive && hasTunnel);

test.each([
  { attackers: "other addresses", from: ["127.0.0.2", "127.0.0.3"] },
  { attackers: "the daemons' own address", from: [DAEMONS_ADDRESS] },
])("anonymous upgrades and silent links of one node, from $attackers, do not block daemons", async ({ from }) => {
  const settings = { fleet: { connectsPerSecond: CONNECTS_PER_SECOND }, log: { level: "warn" } };
  stage = await FleetStage.start({ nodes: DAEMONS + 1, settings });
  const { platformUrl, nodes } = stage;
  const [hostile, ...honest] = nodes;
  if (hostile === undefined) throw new Error("the stage has no nodes");
  attacks.push(holdSilentLinks(hostile, { platformUrl, from, links: SILENT_LINKS }));
  attacks.push(floodUpgrades({ platformUrl, from, perSecond: 20 * CONNECTS_PER_SECOND }));
  await waitFor("the attacks", PATIENCE_MS, async () => attacks.every(({ made }) => made >= SILENT_LINKS));
  for (const node of honest) daemons.push(new SimulatedDaemon(node, { tunnel: true }));
  await waitFor("every link and tunnel", PATIENCE_MS, areBack);
  expect(await stage.figure("fairlead_daemon_links_open")).toBeLessThanOrEqual(DAEMONS + 2);
});
