import { afterAll, beforeAll, test } from "vitest";
import type { Machine } from "../../support/machine.ts";
import { waitFor } from "../../support/wait-for.ts";
import { type DockerEvent, DockerEvents } from "./docker-events.ts";
import { expectSettled } from "./settled.ts";
import { configure, describeOnStage, Stage } from "./stage.ts";

/** Kills of every part in the moment when an update passes from one step to the next, as seen from outside. */

/** In the order of a start-first update; stop-first lets the old one end before the new one is started. */
export const BOUNDARIES = [
  "the daemon has the new state",
  "the pull began",
  "the image is here",
  "the new container is made",
  "the new container was started",
  "the new engine answers",
  "the old one was asked to end",
  "the old one ended",
  "the old one is gone",
] as const;
export type Boundary = (typeof BOUNDARIES)[number];

export const PARTS = ["daemon", "control plane", "dockerd", "engine"] as const;
export type Part = (typeof PARTS)[number];

export type Kill = readonly [Part, Boundary];
export type UpdateMode = "start-first" | "stop-first";

const BOUNDARY_MS = 60_000;

interface Update {
  readonly stage: Stage;
  readonly machine: Machine;
  readonly events: DockerEvents;
  /** The container that it replaces. */
  readonly old: string;
  readonly version: string;
  /** The reference of the new image. */
  readonly image: string;
}

/** One engine is updated over and over, and each time something is killed. It must come out as if nothing had been. */
export function drillKills(mode: UpdateMode, kills: readonly Kill[]): void {
  describeOnStage(`a ${mode} update`, () => {
    let stage: Stage;
    let machine: Machine;
    let updates = 0;

    beforeAll(async () => {
      stage = await Stage.create();
      for (const version of ["v0", "v1"]) await stage.image(version);
      machine = await stage.addMachine("Killed", stage.engineConfig(await stage.image("v0"), { update: mode }));
      machine.startDaemon();
      await expectSettled(stage, machine, { serves: "v0" });
    });

    afterAll(() => stage?.remove());

    test.each(kills)("is done though the %s is killed when %s", async (part, boundary) => {
      updates += 1;
      const version = `v${updates % 2}`;
      const image = await stage.image(version);
      const [old = ""] = await machine.running();
      // Of the update before the last one: a pull has something to do.
      await stage.host.docker("rmi", "-f", image).catch(() => null);
      const events = new DockerEvents(stage.host);
      try {
        stage.registry.turn("none");
        const env = { UPDATE: String(updates) };
        await configure(stage.installation, machine, stage.engineConfig(image, { update: mode, env }));
        await REACHED[boundary]({ stage, machine, events, old, version, image });
        await KILLS[part](stage, machine, old);
      } finally {
        events.close();
      }
      await expectSettled(stage, machine, { serves: version });
    });
  });
}

const REACHED: Readonly<Record<Boundary, (update: Update) => Promise<unknown>>> = {
  "the daemon has the new state": ({ machine, image }) =>
    waitFor("the daemon to take it", BOUNDARY_MS, async () => machine.daemon.log.includes(`pull ${image}`)),
  // Docker keeps manifests that it had once, so that only the layers are asked for.
  "the pull began": ({ stage, version }) =>
    waitFor("the registry to be asked", BOUNDARY_MS, async () =>
      stage.registry.asked.some((call) => call.includes(`/v2/${version}-none/`)),
    ),
  "the image is here": ({ events }) =>
    events.until("the pull", BOUNDARY_MS, ({ Type, Action }) => Type === "image" && Action === "pull"),
  "the new container is made": (update) => untilContainer(update, "create", "new"),
  "the new container was started": (update) => untilContainer(update, "start", "new"),
  "the new engine answers": ({ machine, version }) =>
    waitFor("the new engine", BOUNDARY_MS, async () => (await machine.ask()) === version),
  "the old one was asked to end": (update) => untilContainer(update, "kill", "old"),
  "the old one ended": (update) => untilContainer(update, "die", "old"),
  "the old one is gone": (update) => untilContainer(update, "destroy", "old"),
};

function untilContainer({ events, old, machine }: Update, action: string, which: "old" | "new"): Promise<void> {
  const isOurs = ({ Type, Actor }: DockerEvent): boolean =>
    Type === "container" && Actor.Attributes["dev.fairlead.node"] === machine.nodeId;
  return events.until(`${action} of the ${which} container`, BOUNDARY_MS, (event) => {
    return isOurs(event) && event.Action === action && (event.Actor.ID === old) === (which === "old");
  });
}

/** Each part is back at once, as its supervisor would have it. */
const KILLS: Readonly<Record<Part, (stage: Stage, machine: Machine, old: string) => Promise<void>>> = {
  daemon: async (_stage, machine) => {
    await machine.daemon.kill();
    machine.startDaemon();
  },
  "control plane": async ({ installation }) => {
    await installation.server.kill();
    await installation.startServer();
  },
  dockerd: async ({ host }) => {
    await host.killDocker();
    await host.startDocker();
  },
  engine: async (_stage, machine, old) => {
    const running = await machine.running();
    const victim = running.find((container) => container !== old) ?? running[0];
    // It may end by itself in this moment.
    if (victim !== undefined) await machine.docker("kill", "--signal", "KILL", victim).catch(() => null);
  },
};
