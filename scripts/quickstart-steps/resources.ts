import { type Node, nodeSchema, projectKeySchema, projectSchema } from "@fairlead/protocol/resources";
import { z } from "zod";
import { type State, writeEnvFile, writeState } from "./env-file.ts";
import { type Api, apiAt } from "./fairlead.ts";
import type { Installation } from "./installation.ts";
import { QuickstartError, type Step } from "./progress.ts";

/**
 * Project, key and node: reused if the state file has them, created otherwise. Each is saved
 * immediately, so that an interrupted run does not create it twice.
 */

const NODE_NAME = "local";
const ANSWER_MS = 30_000;

const createdProjectSchema = z.object({ project: projectSchema });
const defaultModelSchema = z.object({ defaultModel: z.string().optional() });
const createdKeySchema = z.object({ key: projectKeySchema.required({ keyValue: true }) });
const createdNodeSchema = z.object({ node: nodeSchema });
const bootstrapTokenSchema = z.object({ token: z.string() });
const modelsSchema = z.object({ data: z.array(z.object({ id: z.string() })) });

/** The settings known so far; `set` also saves them to the state file. */
export class Settings {
  readonly #at: Installation;
  #state: State;
  #token: string | null = null;

  constructor(at: Installation, state: State) {
    this.#at = at;
    this.#state = state;
  }

  get all(): State {
    return this.#state;
  }

  get(name: keyof State): string {
    const value = this.#state[name];
    if (value === undefined) throw new QuickstartError(`${name} is not set yet.`);
    return value;
  }

  set(change: State): void {
    this.#state = { ...this.#state, ...change };
    writeState(this.#at.stateFile, this.#state);
  }

  /** The session token of this run; not saved. */
  get token(): string {
    if (this.#token === null) throw new QuickstartError("There is no session yet.");
    return this.#token;
  }

  set token(token: string) {
    this.#token = token;
  }

  /** Writes the env file for clients, once everything works. */
  publish(): void {
    writeEnvFile(this.#at.envFile, this.#state);
  }
}

const platformApi = (settings: Settings): Api => apiAt(settings.get("FAIRLEAD_BASE_URL"), settings.token);

export async function ensureProject(settings: Settings, step: Step): Promise<void> {
  const api = platformApi(settings);
  const known = settings.all.FAIRLEAD_PROJECT_ID;
  if (known && (await api.find(`/v1/projects/${known}`, projectSchema))) return step.note(known);
  const { project } = await api.create("/v1/projects", { name: "Quickstart" }, createdProjectSchema);
  settings.set({ FAIRLEAD_PROJECT_ID: project.id });
  step.note(project.id);
}

export async function ensureKey(settings: Settings): Promise<void> {
  const known = settings.all.FAIRLEAD_API_KEY;
  const inferenceUrl = settings.get("FAIRLEAD_MODELS_URL");
  if (known && (await apiAt(inferenceUrl, known).find("/v1/models", modelsSchema))) return;
  const projectId = settings.get("FAIRLEAD_PROJECT_ID");
  const body = { projectId, name: "quickstart" };
  const { key } = await platformApi(settings).create(`/v1/projects/${projectId}/keys`, body, createdKeySchema);
  settings.set({ FAIRLEAD_API_KEY: key.keyValue });
}

export async function ensureNode(settings: Settings, step: Step): Promise<Node> {
  const known = settings.all.FAIRLEAD_NODE_ID;
  const found = known ? await platformApi(settings).find(`/v1/nodes/${known}`, nodeSchema) : null;
  const node = found ?? (await createNode(settings));
  step.note(`${node.identifier} (${node.id})`);
  return node;
}

async function createNode(settings: Settings): Promise<Node> {
  const projectId = settings.get("FAIRLEAD_PROJECT_ID");
  const body = { projectId, planId: "byo", name: NODE_NAME, engineConfig: { preset: "fairlead-demo" } };
  const { node } = await platformApi(settings).create("/v1/nodes", body, createdNodeSchema);
  settings.set({ FAIRLEAD_NODE_ID: node.id });
  return node;
}

export async function getNode(settings: Settings): Promise<Node> {
  const id = settings.get("FAIRLEAD_NODE_ID");
  const node = await platformApi(settings).find(`/v1/nodes/${id}`, nodeSchema);
  if (!node) throw new QuickstartError(`Node ${id} no longer exists. Run this again to create a new one.`);
  return node;
}

export async function createBootstrapToken(settings: Settings): Promise<string> {
  const path = `/v1/nodes/${settings.get("FAIRLEAD_NODE_ID")}/bootstrap-tokens`;
  return (await platformApi(settings).create(path, {}, bootstrapTokenSchema)).token;
}

/** @returns the node's first model, in the form that callers use, or undefined. */
export async function findModel(settings: Settings, node: Node): Promise<string | undefined> {
  const api = apiAt(settings.get("FAIRLEAD_MODELS_URL"), settings.get("FAIRLEAD_API_KEY"));
  const models = await api.find("/v1/models", modelsSchema);
  return models?.data.map(({ id }) => id).find((id) => id.startsWith(`${node.identifier}/`));
}

/** Sets the model for calls without `model`, unless the project has a default. */
export async function ensureDefaultModel(settings: Settings, model: string): Promise<void> {
  const api = platformApi(settings);
  const path = `/v1/projects/${settings.get("FAIRLEAD_PROJECT_ID")}`;
  const known = await api.find(path, defaultModelSchema);
  if (known?.defaultModel === undefined) await api.update(path, { defaultModel: model }, projectSchema);
}

/** Whether the model currently generates a token. */
export async function answers(settings: Settings, model: string): Promise<boolean> {
  const response = await fetch(`${settings.get("FAIRLEAD_MODELS_URL")}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${settings.get("FAIRLEAD_API_KEY")}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "ping" }], max_tokens: 1 }),
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  await response.arrayBuffer();
  return response.ok;
}
