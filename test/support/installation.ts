import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { openLocalAdmin } from "../../packages/control-plane/src/installation/admin/local-admin.ts";
import { loadConfig } from "../../packages/control-plane/src/installation/config/config.ts";
import { type Api, apiAt } from "../../scripts/quickstart-steps/fairlead.ts";
import { ensureDemoImage } from "./docker.ts";
import { Machine, type MachineOptions } from "./machine.ts";
import { twoFreePorts } from "./ports.ts";
import { Program } from "./program.ts";
import { waitFor } from "./wait-for.ts";

const SERVER = new URL("../../packages/cli/bin/fairlead.js", import.meta.url).pathname;
const ADMINISTRATOR = { email: "admin@drill.local", name: "Drill", platformAdmin: true };
const READY_MS = 30_000;

const createdProject = z.object({ project: z.object({ id: z.string() }) });
const createdKey = z.object({ key: z.object({ keyValue: z.string() }) });
const createdNode = z.object({ node: z.object({ id: z.string(), identifier: z.string() }) });
const issuedToken = z.object({ token: z.string() });

/** A control plane as it is shipped, in a process of its own on a data folder of its own, and the machines of its nodes. */
export class Installation {
  readonly dir = mkdtempSync(join(tmpdir(), "fairlead-drill-"));
  readonly #machines: Machine[] = [];
  readonly #configFile = join(this.dir, "config.yaml");
  platformUrl = "";
  modelsUrl = "";
  projectId = "";
  key = "";
  #api: Api | null = null;
  #token = "";
  #server: Program | null = null;

  /** @param address that both hosts listen on, and nodes reach. @param settings on top of what it needs. */
  static async start(address = "127.0.0.1", settings: object = {}): Promise<Installation> {
    const installation = new Installation();
    try {
      await installation.#configure(address, settings);
      await installation.startServer();
      await installation.#fill();
      return installation;
    } catch (error) {
      await installation.remove();
      throw error;
    }
  }

  get api(): Api {
    if (this.#api === null) throw new Error("the installation has not started");
    return this.#api;
  }

  get server(): Program {
    if (this.#server === null) throw new Error("the installation has not started");
    return this.#server;
  }

  async startServer(): Promise<void> {
    const server = new Program([process.execPath, SERVER, "server", "--config", this.#configFile], this.#log("server"));
    this.#server = server;
    await waitFor("the control plane", READY_MS, async () => {
      return !server.running || (await fetch(`${this.platformUrl}/readyz`)).ok;
    });
    if (!server.running) throw new Error(`the control plane ended at once:\n${server.lastLines()}`);
  }

  /** As the administrator, for what `api` does not know. */
  call(method: string, path: string, body?: object): Promise<Response> {
    const authorization = `Bearer ${this.#token}`;
    if (body === undefined) return fetch(`${this.platformUrl}${path}`, { method, headers: { authorization } });
    const headers = { authorization, "content-type": "application/json" };
    return fetch(`${this.platformUrl}${path}`, { method, headers, body: JSON.stringify(body) });
  }

  /** What the command line needs in its environment to act as the administrator. */
  get environment(): Readonly<Record<string, string>> {
    return { FAIRLEAD_BASE_URL: this.platformUrl, FAIRLEAD_TOKEN: this.#token, FAIRLEAD_PROJECT_ID: this.projectId };
  }

  /** A project that machines and keys belong to from now on. */
  async useNewProject(): Promise<void> {
    this.projectId = await this.createProject("Drill");
    this.key = (await this.createKey(this.projectId)).keyValue;
  }

  async createProject(name: string): Promise<string> {
    return (await this.api.create("/v1/projects", { name }, createdProject)).project.id;
  }

  async createKey(projectId: string): Promise<{ readonly keyValue: string }> {
    return (await this.api.create(`/v1/projects/${projectId}/keys`, { projectId, name: "drill" }, createdKey)).key;
  }

  async createNode(
    name: string,
    { engineConfig, directSecrets = false }: { readonly engineConfig: object | null; readonly directSecrets?: boolean },
  ): Promise<{ readonly id: string; readonly identifier: string }> {
    const node = {
      projectId: this.projectId,
      planId: "byo",
      name,
      directSecrets,
      ...(engineConfig && { engineConfig }),
    };
    return (await this.api.create("/v1/nodes", node, createdNode)).node;
  }

  async bootstrapToken(nodeId: string): Promise<string> {
    return (await this.api.create(`/v1/nodes/${nodeId}/bootstrap-tokens`, {}, issuedToken)).token;
  }

  /** Adds a machine with a token and a daemon that has not started yet. Builds the demo engine's image if the machine needs it. */
  async addMachine(name: string, options: MachineOptions = {}): Promise<Machine> {
    const { engineConfig = { preset: "fairlead-demo" }, directSecrets = false, dockerSocket } = options;
    if (options.engineConfig === undefined && dockerSocket === undefined) await ensureDemoImage();
    const node = await this.createNode(name, { engineConfig, directSecrets });
    const machine = new Machine(this, node, options);
    this.#machines.push(machine);
    machine.giveToken(await this.bootstrapToken(node.id));
    return machine;
  }

  /** Ends all that was started here, and forgets it. */
  async remove(): Promise<void> {
    for (const machine of this.#machines) await machine.remove();
    await this.#server?.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }

  async #configure(address: string, settings: object): Promise<void> {
    const [platform, inference] = await twoFreePorts();
    this.platformUrl = `http://${address}:${platform}`;
    this.modelsUrl = `http://${address}:${inference}`;
    const server = {
      platform: { host: address, port: platform },
      inference: { host: address, port: inference },
      publicUrl: this.platformUrl,
      modelsUrl: this.modelsUrl,
    };
    // JSON is YAML.
    writeFileSync(this.#configFile, JSON.stringify({ dataDir: join(this.dir, "data"), server, ...settings }));
  }

  async #fill(): Promise<void> {
    const admin = await openLocalAdmin(loadConfig({ file: this.#configFile, env: {} }));
    await admin.createUser(ADMINISTRATOR);
    const { token } = await admin.createToken({ email: ADMINISTRATOR.email });
    await admin.close();
    this.#token = token;
    this.#api = apiAt(this.platformUrl, token);
    await this.useNewProject();
  }

  #log(name: string): string {
    return join(this.dir, `${name}.log`);
  }
}
