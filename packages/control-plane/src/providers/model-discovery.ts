import type { Clock } from "@fairlead/protocol/clock";
import { LRUCache } from "lru-cache";
import type { UpstreamTransport } from "../inference/upstream.ts";
import { askUpstream } from "./ask-upstream.ts";
import { readModelList } from "./model-list.ts";

/** Whose models are asked for. */
export interface DiscoverySource {
  /** Of the provider and its settings, unique over all projects: another place lists other models. */
  readonly listKey: string;
  readonly open: () => UpstreamTransport;
}

interface Known {
  /** What it listed last; null where it never did. */
  names: readonly string[] | null;
  /** Monotonic milliseconds. */
  askAgainAt: number;
  asking: Promise<void> | null;
}

export const MODELS_PATH = "/models";
/** Providers add models every few weeks; engines, when somebody restarts them. */
const BELIEVED_MS = 5 * 60_000;
/** After one that failed: soon enough for a provider that was away, seldom enough for one that is gone. */
const RETRY_MS = 30_000;
const ANSWER_MS = 10_000;
/** How long a list waits for a provider that has never answered. */
const PATIENCE_MS = 3000;
const MAX_PROVIDERS = 500;

/**
 * What providers say that they serve. One question at a time to each; a list that is old, or whose renewal failed, is told on meanwhile.
 * Calls never wait for it: it is for lists alone.
 */
export class ModelDiscovery {
  readonly #clock: Clock;
  readonly #known = new LRUCache<string, Known>({ max: MAX_PROVIDERS });

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  async modelsOf(source: DiscoverySource): Promise<readonly string[]> {
    const known = this.#entry(source.listKey);
    if (known.asking === null && this.#clock.monotonic() >= known.askAgainAt) {
      known.asking = this.#ask(source, known).finally(() => {
        known.asking = null;
      });
    }
    if (known.names === null && known.asking !== null) await patiently(known.asking);
    return known.names ?? [];
  }

  #entry(key: string): Known {
    const known = this.#known.get(key) ?? { names: null, askAgainAt: 0, asking: null };
    this.#known.set(key, known);
    return known;
  }

  async #ask({ open }: DiscoverySource, known: Known): Promise<void> {
    const names = await listModels(open).catch(() => null);
    known.names = names ?? known.names;
    known.askAgainAt = this.#clock.monotonic() + (names === null ? RETRY_MS : BELIEVED_MS);
  }
}

async function listModels(open: () => UpstreamTransport): Promise<readonly string[] | null> {
  const { status, text } = await askUpstream(open(), { path: MODELS_PATH, timeoutMs: ANSWER_MS });
  return status === 200 ? readModelList(text) : null;
}

async function patiently(promise: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, PATIENCE_MS);
  await Promise.race([promise, late.promise]);
  clearTimeout(timer);
}
