import type { ServerResponse } from "node:http";
import { atEndOfTurn } from "@fairlead/wire/end-of-turn";

/** A response whose writes of one turn of the event loop go out together at its end. */
export class HeldResponse {
  readonly #response: ServerResponse;
  #isHeld = false;
  #end: (() => void) | null = null;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /** To be called before something is written. */
  hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.#response.socket?.cork();
    atEndOfTurn(() => this.#release());
  }

  /** After all that was written until now. @param end ends the response */
  endWith(end: () => void): void {
    this.#end = end;
    this.hold();
  }

  /** What was written until now is still sent: a caller that has seen no byte of an answer takes the call for one that never began. */
  break(): void {
    const { socket } = this.#response;
    // A head alone waits for the first piece of its body.
    if (this.#response.headersSent) this.#response.flushHeaders();
    // Node holds a turn's chunks back as well.
    while (socket?.writableCorked) socket.uncork();
    this.#response.destroy();
  }

  #release(): void {
    this.#isHeld = false;
    // An ending response lets its connection go by itself.
    if (this.#end !== null && !this.#response.destroyed) this.#end();
    else this.#response.socket?.uncork();
  }
}
