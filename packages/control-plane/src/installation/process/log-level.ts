import type { Logger } from "pino";
import type { LogLevel } from "./log.ts";

/** What is logged, as it may be changed while the server runs; a start goes back to the settings. */
export class LogLevelSwitch {
  readonly #log: Logger;
  readonly #configured: string;
  #back: NodeJS.Timeout | null = null;

  constructor(log: Logger) {
    this.#log = log;
    this.#configured = log.level;
  }

  /** @param seconds after which the configured level counts again; null: it stays. */
  set(level: LogLevel, seconds: number | null): void {
    if (this.#back !== null) clearTimeout(this.#back);
    this.#back = seconds === null ? null : setTimeout(() => this.#change(this.#configured), seconds * 1000).unref();
    this.#change(level);
  }

  get configured(): string {
    return this.#configured;
  }

  #change(level: string): void {
    const before = this.#log.level;
    this.#log.level = level;
    this.#log.info({ level, before }, "the log level was changed");
  }
}
