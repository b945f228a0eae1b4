import { FairShare, type Holding } from "@fairlead/hosting/fair-share";
import { DomainError } from "@fairlead/protocol/errors";
import { networkOf } from "../../http/limits/client-address.ts";

export interface HashingLineOptions {
  /** Each hash uses a core, 19 MiB, and one of the four threads that also read files. */
  readonly atOnce: number;
  /** Maximum queue length. */
  readonly waiting: number;
  /** Called for every rejection. */
  readonly onRefused?: () => void;
}

const DEFAULTS: HashingLineOptions = { atOnce: 2, waiting: 62 };
/** Limit per client network; lower while others wait. */
const SHARE = 0.25;
const RETRY_SECONDS = 2;

interface Party extends Holding {
  readonly name: string;
}

/** Queues password hashing, the most expensive unauthenticated operation. */
export class HashingLine {
  readonly #options: HashingLineOptions;
  readonly #places: FairShare;
  /** Waiting or running, by network. */
  readonly #parties = new Map<string, Party>();
  readonly #line: (() => void)[] = [];
  #running = 0;

  constructor(options: Partial<HashingLineOptions> = {}) {
    this.#options = { ...DEFAULTS, ...options };
    this.#places = new FairShare(this.#options.atOnce + this.#options.waiting, SHARE);
  }

  /** @param address the client's. @throws DomainError `overloaded`, or the error of the work */
  async run<T>(address: string, work: () => Promise<T>): Promise<T> {
    const party = this.#enter(networkOf(address));
    try {
      if (this.#running >= this.#options.atOnce) await new Promise<void>((resolve) => this.#line.push(resolve));
      this.#running++;
      try {
        return await work();
      } finally {
        this.#running--;
        this.#line.shift()?.();
      }
    } finally {
      this.#places.giveBack(1, party);
      if (party.amount === 0) this.#parties.delete(party.name);
    }
  }

  #enter(name: string): Party {
    const party = this.#parties.get(name) ?? { name, amount: 0 };
    if (this.#places.claim(1, party) !== "granted") {
      this.#options.onRefused?.();
      throw new DomainError("overloaded", "Too many passwords are being checked. Retry shortly.", {
        retryAfterSeconds: RETRY_SECONDS,
      });
    }
    this.#parties.set(name, party);
    return party;
  }
}
