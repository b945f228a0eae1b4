import type { UpstreamTransport } from "@fairlead/inference/upstreams/upstream";
import type { Clock } from "@fairlead/protocol/values/clock";
import { LRUCache } from "lru-cache";
import { readModelList } from "../names/model-list.ts";
import { askUpstream } from "./ask-upstream.ts";

/** A provider whose models are listed. */
export interface DiscoverySource {
  /** Unique per provider and settings across projects, because the list depends on both. */
  readonly listKey: string;
  readonly open: () => UpstreamTransport;
}

interface Known {
  /** The last list; null if it never succeeded. */
  names: readonly string[] | null;
  /** Monotonic milliseconds. */
  askAgainAt: number;
  asking: Promise<void> | null;
}

export const MODELS_PATH = "/models";
/** Providers add models every few weeks; engines change theirs on a restart. */
const BELIEVED_MS = 5 * 60_000;
/** After a failure: short enough for an outage, long enough for a provider that no longer exists. */
const RETRY_MS = 30_000;
const ANSWER_MS = 10_000;
/** How long a list waits for a provider that has never responded. */
const PATIENCE_MS = 3000;
const MAX_PROVIDERS = 500;

/**
 * The model lists of providers. Sends one request at a time to each, and keeps an old list while it is refreshed or the
 * refresh fails. Used only for lists; calls never wait for it.
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
