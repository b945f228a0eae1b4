import type { Id } from "@fairlead/protocol/ids";
import type { Prices } from "../billing/prices.ts";
import type { ChatQuirks } from "./bridge/bridge-call.ts";
import type { Dialect } from "./dialect.ts";
import type { UpstreamTimeouts } from "./limits.ts";
import type { UpstreamTransport } from "./upstream.ts";

/** What the inference host asks of whoever knows the models. */
export interface ModelCatalog {
  /**
   * @returns the places that serve the model, the preferred one first; never none.
   * @throws DomainError `model_not_found` for unknown or not yours, `no_running_engine` for known but not running.
   */
  resolve(projectId: Id<"project">, name: string): Promise<ResolvedModel>;
  /** @returns the model that a call without a name is for; null where none is set. */
  defaultModel(projectId: Id<"project">): Promise<string | null>;
  /** @returns what would be answered just now, by name. */
  list(projectId: Id<"project">): Promise<readonly ModelEntry[]>;
  /** @throws DomainError as `resolve` does. */
  entry(projectId: Id<"project">, name: string): Promise<ModelEntry>;
}

export interface ResolvedModel {
  /** As the caller named it. */
  readonly name: string;
  readonly candidates: readonly Candidate[];
}

/** One place that serves a model. */
export interface Candidate {
  /** Of the place itself, unique over all projects: what is counted and broken off by. */
  readonly key: string;
  /** For people, stable in a project: a provider's name, or `node:<identifier>`. */
  readonly upstreamId: string;
  readonly kind: "provider" | "node";
  /** Candidates of the same rank are as good as each other; a higher one waits until all lower ones have failed. */
  readonly rank: number;
  /** The name as the upstream knows it. */
  readonly model: string;
  /** What it speaks; at least one. A call of the other dialect is converted on its way (decisions/0016). */
  readonly protocols: readonly Dialect[];
  /** How its chat dialect differs from that of engines. */
  readonly chat?: ChatQuirks;
  /** More of the caller's headers that it may get. */
  readonly forwardHeaders: readonly string[];
  /** Null where nobody said. */
  readonly contextTokens: number | null;
  readonly maxOutputTokens: number | null;
  readonly prices: Prices | null;
  /** Where they differ from the host's. */
  readonly timeouts?: Partial<UpstreamTimeouts>;
  open(): UpstreamTransport;
}

/** An entry of `GET /v1/models`, in the form that SDKs know. */
export interface ModelEntry {
  readonly id: string;
  readonly object: "model";
  /** Unix seconds. */
  readonly created: number;
  readonly owned_by: string;
  /** Only where known, like what follows. Input and output together. */
  readonly context_length?: number;
  readonly max_output_tokens?: number;
  /** Nano-dollars, for a million tokens and for a request. */
  readonly prices?: {
    readonly input: number;
    readonly cached_input: number;
    readonly output: number;
    readonly per_request: number;
  };
}
