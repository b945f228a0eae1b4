import { Distribution } from "@fairlead/hosting/distribution";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Logger } from "pino";

/** One executed statement. Omits its values, which belong to the caller. */
export interface Statement {
  readonly sql: string;
  readonly milliseconds: number;
  readonly handle: "main" | "long" | "writes";
  /** Whether it blocked the main thread. */
  readonly blocking: boolean;
}

export type OnStatement = (statement: Statement) => void;

/** Maximum time the main thread should be blocked (docs/operations.md). */
const SLOW_MS = 5;
/** The same statement is reported once per interval, so that a slow disk does not flood the log. */
const REPEAT_MS = 60_000;
/** A safety limit: the program has a fixed, small set of statements. */
const MAX_REMEMBERED = 500;
const SECONDS = [0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5];

/** Times every statement and logs those that block the main thread. */
export class StatementWatch {
  readonly times: Readonly<Record<Statement["handle"], Distribution>> = {
    main: new Distribution(SECONDS),
    long: new Distribution(SECONDS),
    writes: new Distribution(SECONDS),
  };
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #toldAt = new Map<string, number>();

  constructor(deps: { readonly log: Logger; readonly clock: Clock }) {
    this.#log = deps.log;
    this.#clock = deps.clock;
  }

  readonly observe: OnStatement = (statement) => {
    const { sql, milliseconds, handle, blocking } = statement;
    this.times[handle].observe(milliseconds / 1000);
    if (!blocking || milliseconds <= SLOW_MS || this.#toldLately(sql)) return;
    this.#log.warn({ sql, milliseconds: Math.round(milliseconds * 10) / 10 }, "slow statement on the main thread");
  };

  #toldLately(sql: string): boolean {
    const now = this.#clock.monotonic();
    const toldAt = this.#toldAt.get(sql);
    if (toldAt !== undefined && now - toldAt < REPEAT_MS) return true;
    if (this.#toldAt.size >= MAX_REMEMBERED) this.#toldAt.clear();
    this.#toldAt.set(sql, now);
    return false;
  }
}
