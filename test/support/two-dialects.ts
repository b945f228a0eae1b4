import type { Candidate, ModelCatalog } from "../../packages/inference/src/calls/model-catalog.ts";
import { DataPlane, PROJECT_KEY } from "./data-plane.ts";
import { ScriptedDialects } from "./scripted-dialects.ts";

type Spoken = "chat" | "responses";

/** Models named by what is spoken to them: a call of the other dialect has to be converted. */
export const MODEL: Readonly<Record<Spoken, string>> = { chat: "node-1/chat", responses: "node-1/responses" };

export interface Way {
  /** Of the caller. */
  readonly dialect: Spoken;
  readonly model: string;
  readonly way: "native" | "bridged";
}

/** Every way from a caller to a model. */
export const WAYS: readonly Way[] = [
  { dialect: "chat", model: MODEL.chat, way: "native" },
  { dialect: "chat", model: MODEL.responses, way: "bridged" },
  { dialect: "responses", model: MODEL.responses, way: "native" },
  { dialect: "responses", model: MODEL.chat, way: "bridged" },
];

/** An inference host before an engine of both dialects, with a model for each. */
export class TwoDialects {
  readonly upstream = new ScriptedDialects();
  readonly plane = new DataPlane({ models: (engines) => new SpokenCatalog(engines) });
  readonly key = PROJECT_KEY;

  /** As SDKs want it. */
  get baseUrl(): string {
    return `${this.plane.url}/v1`;
  }

  async start(): Promise<void> {
    this.plane.target = { ...this.plane.target, models: ["chat", "responses"] };
    this.plane.engine.script = this.upstream.script;
    await this.plane.start();
  }

  async stop(): Promise<void> {
    await this.plane.stop();
  }
}

class SpokenCatalog implements ModelCatalog {
  readonly #engines: ModelCatalog;

  constructor(engines: ModelCatalog) {
    this.#engines = engines;
  }

  async resolve(...of: Parameters<ModelCatalog["resolve"]>): ReturnType<ModelCatalog["resolve"]> {
    const { name, candidates } = await this.#engines.resolve(...of);
    return { name, candidates: candidates.map(speaking) };
  }

  defaultModel(): Promise<string> {
    return Promise.resolve(MODEL.chat);
  }

  list(...of: Parameters<ModelCatalog["list"]>): ReturnType<ModelCatalog["list"]> {
    return this.#engines.list(...of);
  }

  entry(...of: Parameters<ModelCatalog["entry"]>): ReturnType<ModelCatalog["entry"]> {
    return this.#engines.entry(...of);
  }
}

function speaking(candidate: Candidate): Candidate {
  return { ...candidate, protocols: [candidate.model === "responses" ? "responses" : "chat"] };
}
