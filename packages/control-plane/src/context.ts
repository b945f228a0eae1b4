import type { Clock } from "@fairlead/protocol/clock";
import type { Config } from "./config.ts";
import type { StatementWatch } from "./db/statement-watch.ts";
import type { PortRequest } from "./http/listen.ts";
import type { TlsFront } from "./http/tls-front.ts";
import type { Installation, Ports } from "./installation.ts";
import type { Log } from "./log.ts";

/** What the parts of the composition root hand to each other. */

export interface Context {
  readonly config: Config;
  readonly log: Log;
  readonly ports: Ports;
  readonly installation: Installation;
  readonly addresses: Addresses;
  /** In front of both hosts; null where a proxy does it, or nobody. */
  readonly tls: TlsFront | null;
  readonly deadline: StopDeadline;
  readonly statements: StatementWatch;
}

export interface Addresses {
  readonly platform: PortRequest;
  readonly inference: PortRequest;
  /** Where the hosts listen; `publicUrl` and `modelsUrl` are what others are told. */
  readonly platformUrl: string;
  readonly inferenceUrl: string;
  readonly publicUrl: string;
  readonly modelsUrl: string;
}

/** One deadline for the whole stop, from the moment that it was asked for. */
export class StopDeadline {
  readonly #clock: Clock;
  readonly #ms: number;
  #begun: number | null = null;

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
  }

  begin(): void {
    this.#begun ??= this.#clock.monotonic();
  }

  leftMs(): number {
    const gone = this.#begun === null ? 0 : this.#clock.monotonic() - this.#begun;
    return Math.max(0, this.#ms - gone);
  }
}
