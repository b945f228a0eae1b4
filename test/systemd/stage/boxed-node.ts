import type { Node } from "@fairlead/protocol/resources";
import type { Installation } from "../../support/installation.ts";
import type { Machine } from "../../support/machine.ts";
import type { ScriptResult } from "../../support/run-script.ts";
import { waitFor } from "../../support/wait-for.ts";
import type { Box } from "./box.ts";

const ACTIVE_MS = 90_000;
/** The daemon's exit code where the platform refuses the node for good. */
const REFUSED = "5";
const UNIT = "fairlead-daemon";

/** A run of an engine: another one has another container, or began at another time. */
export interface EngineRun {
  readonly container: string;
  readonly startedAt: string;
}

/** How an update can end. */
const UPDATE_ENDS = ["done", "rolled_back", "refused"];
const UPDATE_MS = 180_000;

/** A node on a machine of its own, seen from inside the machine and from the platform. */
export class BoxedNode {
  readonly box: Box;
  /** The node as the platform and its callers see it. */
  readonly machine: Machine;
  readonly #installation: Installation;

  constructor(installation: Installation, box: Box, machine: Machine) {
    this.#installation = installation;
    this.box = box;
    this.machine = machine;
  }

  token(): Promise<string> {
    return this.#installation.bootstrapToken(this.machine.nodeId);
  }

  /** As docs/install.md says. @param options of the script. @param token for its environment. */
  install(options: readonly string[], token = ""): Promise<ScriptResult> {
    const script = `curl -fsSL ${this.#installation.platformUrl}/install.sh`;
    return this.box.try(`${script} | FAIRLEAD_BOOTSTRAP_TOKEN=${token} sh -s -- ${options.join(" ")}`);
  }

  /** Installs the daemon, and waits until the node is active. */
  async join(): Promise<void> {
    const { code, out, errors } = await this.install(["--insecure"], await this.token());
    if (code !== 0) throw new Error(`install.sh ended with ${code}:\n${out}${errors}`);
    await this.untilActive();
  }

  async untilActive(): Promise<void> {
    let seen: Node | null = null;
    await waitFor("the node to be active", ACTIVE_MS, async () => {
      seen = await this.machine.node();
      return seen.status === "active";
    }).catch(async (error: unknown) => {
      throw new Error(`${seen?.status}: ${seen?.statusMessage}\n${await this.journal()}`, { cause: error });
    });
  }

  /** @throws where there is not exactly one. */
  async engine(): Promise<EngineRun> {
    const [container = "", ...more] = await this.containers();
    if (container === "" || more.length > 0) throw new Error(`not one engine: ${[container, ...more].join(", ")}`);
    const startedAt = await this.box.run(`docker inspect -f '{{.State.Running}} {{.State.StartedAt}}' ${container}`);
    return { container, startedAt };
  }

  /** Full ids of the node's containers, in every state. */
  async containers(): Promise<readonly string[]> {
    const ids = await this.box.run(`docker ps -aq --no-trunc --filter label=dev.fairlead.node=${this.machine.nodeId}`);
    return ids.split("\n").filter(Boolean);
  }

  /** A property of the unit, as `systemctl show` names it. */
  property(name: string): Promise<string> {
    return this.box.run(`systemctl show ${UNIT} --property=${name} --value`);
  }

  mainPid(): Promise<string> {
    return this.property("MainPID");
  }

  /** Waits until the daemon runs in another process. */
  async untilAnotherPid(than: string): Promise<void> {
    await waitFor("another daemon", ACTIVE_MS, async () => {
      const pid = await this.mainPid();
      return pid !== "0" && pid !== than && (await this.property("ActiveState")) === "active";
    });
  }

  /** Asks for a version of the daemon, and waits until the node has told how that ended. */
  async update(version: string): Promise<Node> {
    const since = Date.now();
    const path = `/v1/nodes/${this.machine.nodeId}/daemon-version`;
    const response = await this.#installation.call("PUT", path, { version });
    if (!response.ok) throw new Error(await response.text());
    return waitFor(`the update to ${version} to end`, UPDATE_MS, async () => {
      const node = await this.machine.node();
      const update = node.daemonUpdate;
      if (update?.wanted !== version || Date.parse(update.since) < since) return false;
      return UPDATE_ENDS.includes(update.state) && node.status === "active" && node;
    }).catch(async (error: unknown) => {
      const { daemonUpdate } = await this.machine.node();
      throw new Error(`${JSON.stringify(daemonUpdate)}\n${await this.journal(60)}`, { cause: error });
    });
  }

  /** Waits until the daemon has ended for good: the platform refuses this node, and systemd does not start it again. */
  async untilRefused(): Promise<void> {
    await waitFor("the daemon to be refused", ACTIVE_MS, async () => {
      const [state, status] = await Promise.all([this.property("ActiveState"), this.property("ExecMainStatus")]);
      return state === "failed" && status === REFUSED;
    }).catch(async (error: unknown) => {
      throw new Error(await this.journal(), { cause: error });
    });
  }

  /** Asks the engine itself, on its port on the machine's loopback. */
  async untilEngineIsHealthy(): Promise<void> {
    const ofNode = `--filter label=dev.fairlead.node=${this.machine.nodeId}`;
    await this.box.until(`curl -fsS "http://$(docker port $(docker ps -q ${ofNode}) | sed 's/.* //')/health"`, 90);
  }

  /** Makes the daemon turn in a circle for ever. */
  async blockEventLoop(): Promise<void> {
    await this.box.blockEventLoop(await this.mainPid(), "/opt/fairlead-daemon/current/bin/node");
  }

  /** What the daemon said, the end of it. */
  async journal(lines = 30): Promise<string> {
    return (await this.box.try(`journalctl -u ${UNIT} -n ${lines} -o cat --no-pager`)).out;
  }
}
