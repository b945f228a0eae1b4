import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "vitest";
import { dockerAt } from "../../../packages/daemon/src/testing/docker-engine.ts";
import {
  type Login,
  type Registry,
  startRegistry,
  whyNoRegistry,
} from "../../../packages/daemon/src/testing/registry.ts";
import { AgentCaller } from "../../support/agent-calls.ts";
import { DockerHost, type DockerHostOptions, whyNoDockerHost } from "../../support/docker-host.ts";
import { Installation } from "../../support/installation.ts";
import type { Machine } from "../../support/machine.ts";
import { Bystanders } from "./bystanders.ts";
import { FaultyRegistry } from "./faulty-registry.ts";
import { type EngineFault, type EngineImage, importEngine } from "./images.ts";

/** A suite on a stage. Where this machine cannot have one it is one skipped test that says why. */
export function describeOnStage(name: string, suite: () => void): void {
  const reason = whyNoDockerHost() ?? whyNoRegistry();
  if (reason === null) describe(name, suite);
  else test(name, ({ skip }) => skip(reason));
}

/** Nothing on disk, in a log or on a command line may hold these. */
export const TOKEN = "c4nary-t0ken-31f7\nof two lines\n";
export const LOGIN: Login = { username: "robot", password: "c4nary-l0gin-88d2" };

/** In the config of the control plane: what an operator may set too, only shorter. */
const FLEET = { minHeartbeatSeconds: 1, missedHeartbeats: 3 };
const HEALTH = { intervalSeconds: 1, timeoutSeconds: 2, startPeriodSeconds: 4, failureThreshold: 2 };

export interface StageOptions {
  readonly host?: DockerHostOptions;
}

export interface StageMachineOptions {
  readonly installation?: Installation;
  /** Put before the daemon's command line. */
  readonly before?: readonly string[];
}

/**
 * What a drill is played on: a host with a Docker engine of its own that may be killed, a registry that asks for a login and can be
 * made to fail, a control plane and daemons in processes of their own, and other people's things beside them.
 */
export class Stage {
  readonly host: DockerHost;
  readonly bystanders: Bystanders;
  readonly runtimeDir = mkdtempSync("/dev/shm/fairlead-drill-");
  readonly #images = new Map<string, string>();
  #registry: Registry | null = null;
  #faulty: FaultyRegistry | null = null;
  #registryHost = "";
  #installations: Installation[] = [];

  private constructor(host: DockerHost) {
    this.host = host;
    this.bystanders = new Bystanders(host);
  }

  static async create(options: StageOptions = {}): Promise<Stage> {
    const stage = new Stage(await DockerHost.create(options.host));
    try {
      const registry = await startRegistry(LOGIN);
      stage.#registry = registry;
      stage.#faulty = new FaultyRegistry(registry.host);
      stage.#registryHost = await stage.#faulty.listen(stage.host.ourAddress);
      await stage.addInstallation();
      await stage.bystanders.create();
      return stage;
    } catch (error) {
      await stage.remove();
      throw error;
    }
  }

  get installation(): Installation {
    return present(this.#installations[0]);
  }

  /** On the way from the Docker engine to the registry. */
  get registry(): FaultyRegistry {
    return present(this.#faulty);
  }

  async addInstallation(): Promise<Installation> {
    const installation = await Installation.start(this.host.ourAddress, { fleet: FLEET });
    this.#installations.push(installation);
    return installation;
  }

  /** @returns the reference by digest of an engine's image in the registry; the host has it only once it is pulled. */
  async image(version: string, fault: EngineFault = "none"): Promise<string> {
    const name = `${version}-${fault}`;
    const known = this.#images.get(name);
    if (known !== undefined) return known;
    const digest = await this.#push({ version, fault }, `${this.#registryHost}/${name}`);
    const reference = `${this.#registryHost}/${name}@${digest}`;
    this.#images.set(name, reference);
    return reference;
  }

  /** Lets a tag of the registry name this engine from now on; the host is not told. */
  async moveTag(name: string, version: string): Promise<{ readonly byTag: string; readonly byDigest: string }> {
    const { ourAddress } = this.host;
    // By another way in, so that the host's own image of that name stays as it is.
    const otherWay = new FaultyRegistry(present(this.#registry).host);
    try {
      const digest = await this.#push({ version, fault: "none" }, `${await otherWay.listen(ourAddress)}/${name}`);
      const repo = `${this.#registryHost}/${name}`;
      return { byTag: `${repo}:1`, byDigest: `${repo}@${digest}` };
    } finally {
      await otherWay.close();
    }
  }

  async #push(image: EngineImage, repo: string): Promise<string> {
    const local = importEngine(this.host, image);
    const digest = await present(this.#registry).push(dockerAt(this.host.socket), local, repo);
    await this.host.docker("rmi", local);
    return digest;
  }

  /** What a secret says that is the registry's login. */
  loginText({ username, password }: Login = LOGIN): string {
    return `${this.#registryHost} ${username}:${password}`;
  }

  /** The registry takes this login and no other from now on. */
  changeLogin(login: Login): void {
    present(this.#registry).changeLogin(login);
  }

  /** What a node's engine is to be. */
  engineConfig(image: string, more: object = {}): object {
    const secrets = { TOKEN: { as: "file" } };
    const update = "start-first";
    return { image, port: 8080, health: HEALTH, secrets, registryAuthSecret: "REGISTRY", update, ...more };
  }

  /** What an agent needs beside its guest: one that begins without its token ends at once. */
  agentConfig(more: object = {}): object {
    const begin = `[ -s /run/secrets/fairlead-token ] || exit 9; exec /bin/busybox sh /engine.sh`;
    const command = ["/bin/busybox", "sh", "-c", begin];
    const secrets = { TOKEN: { as: "file" } };
    const health = { ...HEALTH, path: "/health" };
    return { port: 8080, health, command, secrets, registryAuthSecret: "REGISTRY", ...more };
  }

  /** An agent on a machine, with a secret and the registry's login; it has not been started. @param guest an image of ours */
  async addAgent(machine: Machine, guest: string, config = this.agentConfig()): Promise<AgentCaller> {
    const agent = await AgentCaller.create(this.installation, machine, { guest, config });
    await agent.want("PUT", "/secrets/TOKEN", { value: TOKEN });
    await agent.want("PUT", "/secrets/REGISTRY", { value: this.loginText() });
    return agent;
  }

  /** A machine on the host whose daemon has not been started, with a secret and the registry's login. */
  async addMachine(name: string, engineConfig: object, options: StageMachineOptions = {}): Promise<Machine> {
    const { installation = this.installation, before = [] } = options;
    const enter = [...this.host.enter, ...before];
    const dockerSocket = this.host.socket;
    const daemonArgs = ["--insecure", "--runtime-dir", this.runtimeDir];
    const machine = await installation.addMachine(name, { engineConfig, enter, dockerSocket, daemonArgs });
    await putSecret(installation, machine, ["TOKEN", TOKEN]);
    await putSecret(installation, machine, ["REGISTRY", this.loginText()]);
    return machine;
  }

  /** Where a machine's opened secrets lie, by container. */
  secretFolders(machine: Machine): string[] {
    try {
      // Beside them lies what names the container engine.
      return readdirSync(join(this.runtimeDir, "secrets", machine.nodeId)).filter((name) => !name.startsWith("."));
    } catch {
      return [];
    }
  }

  /** Ends all of it. @throws where something is left that was started here. */
  async remove(): Promise<void> {
    for (const installation of this.#installations) await installation.remove();
    await this.#faulty?.close();
    await this.#registry?.close();
    await this.host.remove();
    rmSync(this.runtimeDir, { recursive: true, force: true });
    const left = processesNaming([this.host.dir, ...this.#installations.map(({ dir }) => dir)]);
    if (left.length > 0) throw new Error(`still running: ${left.join("; ")}`);
  }
}

/** Changes what a node's engine is to be. */
export async function configure(installation: Installation, machine: Machine, engineConfig: object): Promise<void> {
  await done(installation.call("PATCH", `/v1/nodes/${machine.nodeId}`, { node: { engineConfig } }));
}

export async function putSecret(
  installation: Installation,
  machine: Machine,
  [name, value]: readonly [string, string],
): Promise<void> {
  await done(installation.call("PUT", `/v1/nodes/${machine.nodeId}/secrets/${name}`, { value }));
}

async function done(call: Promise<Response>): Promise<void> {
  const response = await call;
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
}

function present<T>(part: T | null | undefined): T {
  if (part === null || part === undefined) throw new Error("the stage is not set");
  return part;
}

/** @returns the command lines of processes that name one of these folders. */
function processesNaming(folders: readonly string[]): string[] {
  const commands = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      } catch {
        return "";
      }
    });
  return commands.filter((command) => folders.some((folder) => command.includes(folder)));
}
