import { type ChildProcess, fork } from "node:child_process";
import { afterEach, expect, test } from "vitest";
import type { DaemonsReport, DaemonsToRun } from "../bench/targets/fleet-daemons-program.ts";
import { type Attack, floodUpgrades, holdSilentLinks } from "../support/entrance-attackers.ts";
import { FleetStage } from "../support/fleet-stage.ts";
import { waitFor } from "../support/wait-for.ts";
import { EVERY_DRILL } from "./stage/every-drill.ts";

/** A whole fleet comes back to a restarted server while others try to keep it out. */

const DAEMONS = 1000;
/** The promise, from when the server is ready. */
const BACK_WITHIN_MS = 60_000;
const SETTLE_MS = 180_000;
const CONNECTS_PER_SECOND = 50;
/** Ten times as many as are let in. */
const FLOOD_PER_SECOND = 500;
const SILENT_LINKS = 250;
const DAEMONS_ADDRESS = "127.0.0.1";

let stage: FleetStage | null = null;
let program: ChildProcess | null = null;
const attacks: Attack[] = [];

afterEach(async () => {
  await Promise.all(attacks.splice(0).map((attack) => attack.stop()));
  program?.kill("SIGKILL");
  await stage?.remove();
});

test.runIf(EVERY_DRILL).each([
  { attackers: "other addresses", from: Array.from({ length: 20 }, (_, n) => `127.0.0.${n + 2}`) },
  { attackers: "the daemons' own address", from: [DAEMONS_ADDRESS] },
])(
  "1,000 daemons reconnect within a minute despite anonymous upgrades and silent links from $attackers",
  async ({ from }) => {
    const settings = { fleet: { connectsPerSecond: CONNECTS_PER_SECOND }, log: { level: "warn" } };
    stage = await FleetStage.start({ nodes: DAEMONS + 1, settings });
    const { platformUrl, nodes } = stage;
    const [hostile, ...honest] = nodes;
    if (hostile === undefined) throw new Error("the stage has no nodes");
    const back = runDaemons({ nodes: honest, tunnels: true });
    await waitFor("the fleet", SETTLE_MS, back);
    attacks.push(holdSilentLinks(hostile, { platformUrl, from, links: SILENT_LINKS }));
    attacks.push(floodUpgrades({ platformUrl, from, perSecond: FLOOD_PER_SECOND }));
    await waitFor("the attacks", SETTLE_MS, async () => attacks.every(({ made }) => made >= SILENT_LINKS));
    await stage.server.stop();
    await waitFor("the fleet to miss the server", SETTLE_MS, async () => !(await back()));
    await stage.startServer();
    await waitFor("the fleet to be back", BACK_WITHIN_MS, back);
    expect(await stage.figure("fairlead_daemon_links_open")).toBeLessThanOrEqual(DAEMONS + 2);
    expect(attacks.every(({ made }) => made > 0)).toBe(true);
  },
);

/** In a process of their own. @returns whether all of them have their link and their tunnel. */
function runDaemons(run: DaemonsToRun): () => Promise<boolean> {
  const url = new URL("../bench/targets/fleet-daemons-program.ts", import.meta.url);
  const child = fork(url.pathname, { execArgv: ["--conditions=fairlead-source"] });
  program = child;
  let latest = { live: 0, tunnels: 0 };
  child.on("message", (report: DaemonsReport) => {
    if ("live" in report) latest = report;
  });
  child.send(run);
  return async () => latest.live === run.nodes.length && latest.tunnels === run.nodes.length;
}
