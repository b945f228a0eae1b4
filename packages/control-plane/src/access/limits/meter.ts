import { MinuteWindow } from "./minute-window.ts";

/** Current usage of one key, agent or project. */
export class Meter {
  readonly requests = new MinuteWindow();
  readonly tokens = new MinuteWindow();
  running = 0;
  /** Tokens that running calls may use beyond those counted. */
  excess = 0;

  /** Whether it can be dropped. */
  isIdle(now: number): boolean {
    return this.running === 0 && this.requests.count(now) === 0 && this.tokens.count(now) === 0;
  }
}
