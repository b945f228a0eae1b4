import type { Clock } from "@fairlead/protocol/values/clock";

/** Milliseconds. An agent's next turn comes within minutes. */
const MAX_AGE_MS = 60 * 60_000;
const MAX_ITEM_BYTES = 256 * 1024;
const MAX_CALLER_BYTES = 1024 * 1024;
const MAX_BYTES = 64 * 1024 * 1024;

/** Items recently returned to one caller. */
export interface CallerItems {
  remember(items: readonly RecentItem[]): void;
  /** @returns the item as returned; undefined if it is unknown, expired or another caller's. */
  find(id: string): unknown;
}

interface RecentItem {
  readonly id?: string | null | undefined;
}

interface Kept {
  readonly text: string;
  /** Monotonic milliseconds. */
  readonly at: number;
}

interface Share {
  /** Oldest first. */
  readonly items: Map<string, Kept>;
  bytes: number;
  /** Time of the newest item. */
  at: number;
}

/**
 * Output items of converted responses, kept for a while in memory: some clients reference items by ID instead of repeating them
 * (vercel/ai#7543, #10060). Callers are isolated from each other, in content and in space.
 */
export class RecentItems {
  readonly #clock: Clock;
  /** By caller, least recently used first. */
  readonly #shares = new Map<string, Share>();
  #bytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Total size of all items. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @param caller identifies the caller uniquely. */
  of(caller: string): CallerItems {
    return {
      remember: (items) => this.#remember(caller, items),
      find: (id) => this.#find(caller, id),
    };
  }

  #find(caller: string, id: string): unknown {
    const kept = this.#shares.get(caller)?.items.get(id);
    return kept === undefined || this.#isOld(kept) ? undefined : (JSON.parse(kept.text) as unknown);
  }

  #remember(caller: string, items: readonly RecentItem[]): void {
    const at = this.#clock.monotonic();
    const share = this.#shares.get(caller) ?? { items: new Map<string, Kept>(), bytes: 0, at };
    share.at = at;
    this.#shares.delete(caller);
    this.#shares.set(caller, share);
    for (const item of items) if (item.id) this.#put(share, item.id, { text: JSON.stringify(item), at });
    for (const [id, kept] of share.items) {
      if (share.bytes <= MAX_CALLER_BYTES && !this.#isOld(kept)) break;
      this.#drop(share, id);
    }
    for (const [each, other] of this.#shares) {
      if (this.#bytes <= MAX_BYTES && !this.#isOld(other)) break;
      this.#shares.delete(each);
      this.#bytes -= other.bytes;
    }
  }

  #put(share: Share, id: string, kept: Kept): void {
    this.#drop(share, id);
    if (kept.text.length > MAX_ITEM_BYTES) return;
    share.items.set(id, kept);
    share.bytes += kept.text.length;
    this.#bytes += kept.text.length;
  }

  #drop(share: Share, id: string): void {
    const length = share.items.get(id)?.text.length ?? 0;
    share.items.delete(id);
    share.bytes -= length;
    this.#bytes -= length;
  }

  #isOld({ at }: { readonly at: number }): boolean {
    return this.#clock.monotonic() - at >= MAX_AGE_MS;
  }
}
