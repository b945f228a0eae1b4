import { MinuteWindow } from "./minute-window.ts";

/** What one key, agent or project uses just now. */
export class Meter {
  readonly requests = new MinuteWindow();
  readonly tokens = new MinuteWindow();
  running = 0;

  /** Whether it may be forgotten. */
  isIdle(now: number): boolean {
    return this.running === 0 && this.requests.count(now) === 0 && this.tokens.count(now) === 0;
  }
}
