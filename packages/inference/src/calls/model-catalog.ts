import type { Dialect } from "@fairlead/dialects/calls/dialect";
import type { ChatQuirks } from "@fairlead/dialects/convert/bridge-call";
import type { Id } from "@fairlead/protocol/values/ids";
import type { UpstreamTimeouts } from "../host/limits.ts";
import type { Prices } from "../ports/prices.ts";
import type { UpstreamTransport } from "../upstreams/upstream.ts";

/** The models, as the inference host sees them. */
export interface ModelCatalog {
  /**
   * @returns the upstreams that serve the model, best first; never empty.
   * @throws DomainError `model_not_found` if unknown or not accessible, `no_running_engine` if known but not running.
   */
  resolve(projectId: Id<"project">, name: string): Promise<ResolvedModel>;
  /** @returns the model for calls without a name; null if none is set. */
  defaultModel(projectId: Id<"project">): Promise<string | null>;
  /** @returns the currently available models by name. */
  list(projectId: Id<"project">): Promise<readonly ModelEntry[]>;
  /** @throws DomainError like `resolve`. */
  entry(projectId: Id<"project">, name: string): Promise<ModelEntry>;
}

export interface ResolvedModel {
  /** As the caller named it. */
  readonly name: string;
  readonly candidates: readonly Candidate[];
}

/** An upstream that serves a model. */
export interface Candidate {
  /** Identifies the upstream across all projects, for counting its calls and pausing it after failures. */
  readonly key: string;
  /** For people; stable within a project: a provider's name, or `node:<identifier>`. */
  readonly upstreamId: string;
  readonly kind: "provider" | "node";
  /** Candidates of equal rank are interchangeable; higher ranks are used only after all lower ones failed. */
  readonly rank: number;
  /** The upstream's name for the model. */
  readonly model: string;
  /** Supported dialects, at least one. Calls in another dialect are converted (decisions/0016). */
  readonly protocols: readonly Dialect[];
  /** How its chat dialect differs from that of engines. */
  readonly chat?: ChatQuirks;
  /** Additional caller headers to forward. */
  readonly forwardHeaders: readonly string[];
  /** Null if unknown. */
  readonly contextTokens: number | null;
  readonly maxOutputTokens: number | null;
  readonly prices: Prices | null;
  /** Overrides of the host's timeouts. */
  readonly timeouts?: Partial<UpstreamTimeouts>;
  open(): UpstreamTransport;
}

/** An entry of `GET /v1/models`, in the format that SDKs expect. */
export interface ModelEntry {
  readonly id: string;
  readonly object: "model";
  /** Unix seconds. */
  readonly created: number;
  readonly owned_by: string;
  /** Input and output together. Omitted if unknown, like the following fields. */
  readonly context_length?: number;
  readonly max_output_tokens?: number;
  /** Nano-dollars per million tokens and per request. */
  readonly prices?: {
    readonly input: number;
    readonly cached_input: number;
    readonly output: number;
    readonly per_request: number;
  };
}
