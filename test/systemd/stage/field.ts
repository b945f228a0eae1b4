import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "vitest";
import { DaemonBuilds } from "../../support/daemon-builds.ts";
import { bridgeAddress, ensureDemoImage } from "../../support/docker.ts";
import { Installation } from "../../support/installation.ts";
import { Machine } from "../../support/machine.ts";
import { Box, type Suite, whyNoBoxes } from "./box.ts";
import { BoxedNode } from "./boxed-node.ts";

/** A suite on machines that systemd runs. Where this machine cannot have such it is one skipped test that says why. */
export function describeOnSystemd(name: string, suite: () => void, root: Suite = "bookworm"): void {
  const reason = whyNoBoxes(root);
  if (reason === null) describe(name, suite);
  else test(name, ({ skip }) => skip(reason));
}

/** What nodes install unless a test says otherwise. */
export const VERSION = "1.0.0-field";

/** In the config of the control plane: what an operator may set too, only shorter. */
const FLEET = { minHeartbeatSeconds: 1, missedHeartbeats: 3 };

/** A control plane that offers builds of this checkout's daemon, and machines that reach it over Docker's bridge. */
export class Field {
  readonly installation: Installation;
  /** What it offers; more can be added. */
  readonly builds: DaemonBuilds;
  readonly #boxes: Box[] = [];

  private constructor(installation: Installation, builds: DaemonBuilds) {
    this.installation = installation;
    this.builds = builds;
  }

  static async create(): Promise<Field> {
    await ensureDemoImage();
    const folder = mkdtempSync(join(tmpdir(), "fairlead-field-"));
    try {
      const builds = await DaemonBuilds.make(folder, VERSION);
      return new Field(
        await Installation.start(await bridgeAddress(), { fleet: FLEET, builds: { dir: folder } }),
        builds,
      );
    } catch (error) {
      rmSync(folder, { recursive: true });
      throw error;
    }
  }

  async boot(suite: Suite): Promise<Box> {
    const box = await Box.boot(suite);
    this.#boxes.push(box);
    return box;
  }

  /** A machine, and a node that it can become. */
  async addNode(suite: Suite): Promise<BoxedNode> {
    const { installation } = this;
    const box = await this.boot(suite);
    const node = await installation.createNode(suite, { engineConfig: { preset: "fairlead-demo" } });
    return new BoxedNode(installation, box, new Machine(installation, node, {}));
  }

  /** Leaves nothing. */
  async remove(): Promise<void> {
    for (const box of this.#boxes) await box.remove();
    await this.installation.remove();
    rmSync(this.builds.out, { recursive: true, force: true });
  }
}
