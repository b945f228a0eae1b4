import type { ServerResponse } from "node:http";
import { atEndOfTurn } from "@fairlead/wire/end-of-turn";

/** Sends all writes of one event-loop turn together at its end. */
export class HeldResponse {
  readonly #response: ServerResponse;
  #isHeld = false;
  #end: (() => void) | null = null;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /** Call it before writing. */
  hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.#response.socket?.cork();
    atEndOfTurn(() => this.#release());
  }

  /** Ends after everything written so far. @param end ends the response */
  endWith(end: () => void): void {
    this.#end = end;
    this.hold();
  }

  /** Sends what was written so far: a client that has received no byte treats the request as never processed. */
  break(): void {
    const { socket } = this.#response;
    // A head without a body waits for the first piece.
    if (this.#response.headersSent) this.#response.flushHeaders();
    // Node corks a turn's chunks as well.
    while (socket?.writableCorked) socket.uncork();
    this.#response.destroy();
  }

  #release(): void {
    this.#isHeld = false;
    // An ending response releases its connection itself.
    if (this.#end !== null && !this.#response.destroyed) this.#end();
    else this.#response.socket?.uncork();
  }
}
