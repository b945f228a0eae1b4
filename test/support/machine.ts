import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Node, nodeEventSchema, nodeSchema } from "@fairlead/protocol/resources";
import { z } from "zod";
import { docker } from "./docker.ts";
import type { Installation } from "./installation.ts";
import { removeNodeNetworks } from "./node-networks.ts";
import { Program } from "./program.ts";
import { RawCall } from "./raw-call.ts";
import { waitFor } from "./wait-for.ts";

const DAEMON = new URL("../../packages/daemon/bin/fairlead-daemon.js", import.meta.url).pathname;
const MODEL = "tinychat-6m";
const ACTIVE_MS = 60_000;

const QUESTION = { messages: [{ role: "user", content: "What is the capital of Japan?" }], temperature: 0 };
export const ANSWER = "The capital of Japan is Tokyo.";
/** The demo engine writes for seconds: there is time to break something meanwhile. */
const ENDLESS = { messages: [{ role: "user", content: "Tell me a story." }], ignore_eos: true, max_tokens: 1800 };

const completion = z.object({ choices: z.array(z.object({ message: z.object({ content: z.string() }) })) });
const eventPage = z.object({ events: z.array(nodeEventSchema) });

export interface MachineOptions {
  /** Left out: the demo engine. Null: no engine. */
  readonly engineConfig?: object | null;
  readonly directSecrets?: boolean;
  /** Put before the daemon's command line: enters a network namespace. */
  readonly enter?: readonly string[];
  readonly dockerSocket?: string;
  /** Arguments of every start of the daemon. */
  readonly daemonArgs?: readonly string[];
}

/** The machine of one node: a real daemon in a process of its own, on a state folder of its own, and its containers. */
export class Machine {
  readonly nodeId: string;
  readonly model: string;
  stateDir: string;
  readonly #installation: Installation;
  readonly #options: MachineOptions;
  readonly #tokenFile: string;
  #daemon: Program | null = null;

  constructor(installation: Installation, node: { id: string; identifier: string }, options: MachineOptions) {
    this.nodeId = node.id;
    this.model = `${node.identifier}/${MODEL}`;
    this.stateDir = join(installation.dir, `${node.id}-state`);
    this.#tokenFile = join(installation.dir, `${node.id}-token`);
    this.#installation = installation;
    this.#options = options;
  }

  get daemon(): Program {
    if (this.#daemon === null) throw new Error("the daemon has not been started");
    return this.#daemon;
  }

  giveToken(token: string): void {
    writeFileSync(this.#tokenFile, token, { mode: 0o600 });
  }

  startDaemon(): void {
    this.#daemon = this.#start(this.stateDir);
  }

  /** A second daemon of this node, as somebody makes it who copies the state folder. It is the caller's to end. */
  startCopy(): Program {
    const copy = `${this.stateDir}-copy`;
    cpSync(this.stateDir, copy, { recursive: true });
    return this.#start(copy);
  }

  /** A daemon that brings this machine's bootstrap token, but has keys of its own. It is the caller's to end. */
  startStranger(): Program {
    return this.#start(`${this.stateDir}-stranger`);
  }

  #start(stateDir: string): Program {
    const { enter = [], dockerSocket = "/var/run/docker.sock", daemonArgs = [] } = this.#options;
    const settings = ["--state-dir", stateDir, "--docker-socket", dockerSocket, "--bootstrap-token-file"];
    const command = [...enter, process.execPath, DAEMON, "run", ...settings, this.#tokenFile, ...daemonArgs];
    return new Program(command, `${stateDir}.log`);
  }

  /** Waits for a line of the daemon that runs now. */
  async untilItLogs(text: string): Promise<void> {
    const daemon = this.daemon;
    await waitFor(`the daemon to log "${text}"`, ACTIVE_MS, async () => daemon.log.includes(text));
  }

  /** Makes the state folder what a daemon leaves that died after its enrolment reached the platform and before the answer did. */
  forgetEnrolment(): void {
    for (const name of ["identity.json", "identity.json.copy"]) {
      const file = join(this.stateDir, name);
      const identity: unknown = JSON.parse(readFileSync(file, "utf8"));
      writeFileSync(file, JSON.stringify({ ...z.looseObject({}).parse(identity), enrolled: null }), { mode: 0o600 });
    }
  }

  async node(): Promise<Node> {
    const node = await this.#installation.api.find(`/v1/nodes/${this.nodeId}`, nodeSchema);
    if (node === null) throw new Error("the node is gone");
    return node;
  }

  async untilActive(): Promise<void> {
    let seen = "";
    await waitFor("the node to be active", ACTIVE_MS, async () => {
      const { status, statusMessage } = await this.node();
      seen = `${status}: ${statusMessage}`;
      return status === "active" || !this.daemon.running;
    }).catch((error: unknown) => {
      throw new Error(`${seen}\n${this.daemon.lastLines()}`, { cause: error });
    });
    if (!this.daemon.running) throw new Error(`the daemon ended:\n${this.daemon.lastLines()}`);
  }

  /** Newest first. */
  async events(): Promise<z.infer<typeof eventPage>["events"]> {
    const page = await this.#installation.api.find(`/v1/nodes/${this.nodeId}/events?pageSize=200`, eventPage);
    return page?.events ?? [];
  }

  /** Full ids of the node's containers, in every state. */
  async containers(): Promise<string[]> {
    const ids = await this.docker("ps", "-aq", "--no-trunc", "--filter", `label=dev.fairlead.node=${this.nodeId}`);
    return ids.split("\n").filter(Boolean);
  }

  /** Full ids of those that run. */
  async running(): Promise<string[]> {
    const ids = await this.docker("ps", "-q", "--no-trunc", "--filter", `label=dev.fairlead.node=${this.nodeId}`);
    return ids.split("\n").filter(Boolean);
  }

  /** How often a container was started, by what the engine itself remembers: a new run has a new time. */
  async startedAt(container: string): Promise<string> {
    return this.docker("inspect", "-f", "{{.State.StartedAt}}", container);
  }

  docker(...args: readonly string[]): Promise<string> {
    const { dockerSocket } = this.#options;
    return docker(...(dockerSocket === undefined ? [] : ["-H", `unix://${dockerSocket}`]), ...args);
  }

  /** @returns the answer's text. @throws where the inference host refuses. */
  async ask(): Promise<string> {
    const { modelsUrl, key } = this.#installation;
    const response = await fetch(`${modelsUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: this.model, ...QUESTION }),
      signal: AbortSignal.timeout(10_000),
    });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return completion.parse(await response.json()).choices[0]?.message.content ?? "";
  }

  async untilItAnswers(): Promise<string> {
    return waitFor("an answer", ACTIVE_MS, () => this.ask()).catch((error: unknown) => {
      throw new Error(this.daemon.lastLines(), { cause: error });
    });
  }

  /** A streamed call that has begun to answer and is not near its end. */
  async openStream(): Promise<RawCall> {
    const { modelsUrl, key } = this.#installation;
    const body = { model: this.model, stream: true, ...ENDLESS };
    const call = new RawCall(modelsUrl, { path: "/v1/chat/completions", bearer: key, body });
    await call.seen('"content"');
    return call;
  }

  /** Ends the daemon and removes every container, volume and network of the node. */
  async remove(): Promise<void> {
    await this.#daemon?.kill();
    for (const container of await this.containers().catch(() => [])) await this.docker("rm", "-fv", container);
    if (this.#daemon !== null) await removeNodeNetworks(this.nodeId, this.#options.dockerSocket).catch(() => undefined);
  }
}
