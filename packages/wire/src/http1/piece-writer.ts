import type { Socket } from "node:net";
import { atEndOfTurn } from "../end-of-turn.ts";

/** Up to here pieces go out as one, in one write. */
const ONE_PIECE_BYTES = 16_384;

/** Writes to one socket: small pieces together at the end of the turn, as soon as they are large at once. */
export class PieceWriter {
  readonly #socket: Socket;
  #pieces: (string | Buffer)[] = [];
  #bytes = 0;
  #isDue = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** All that was written has left this program. */
  get isEmpty(): boolean {
    return this.#bytes === 0 && this.#socket.writableLength === 0;
  }

  /** @param piece Latin-1, where it is text. To a socket that is closed nothing is written. */
  write(piece: string | Buffer): void {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    if (this.#bytes > ONE_PIECE_BYTES) this.#send();
    else if (!this.#isDue) {
      this.#isDue = true;
      atEndOfTurn(this.#onEndOfTurn);
    }
  }

  readonly #onEndOfTurn = (): void => {
    this.#isDue = false;
    if (this.#bytes > 0) this.#send();
  };

  #send(): void {
    const socket = this.#socket;
    const pieces = this.#pieces;
    const bytes = this.#bytes;
    this.#pieces = [];
    this.#bytes = 0;
    if (socket.destroyed || !socket.writable) return;
    if (bytes <= ONE_PIECE_BYTES) {
      socket.write(onePiece(pieces, bytes));
      return;
    }
    socket.cork();
    for (const piece of pieces) socket.write(piece, "latin1");
    socket.uncork();
  }
}

function onePiece(pieces: readonly (string | Buffer)[], bytes: number): Buffer {
  const [first] = pieces;
  if (pieces.length === 1 && typeof first === "object") return first;
  const whole = Buffer.allocUnsafe(bytes);
  let at = 0;
  for (const piece of pieces) {
    at += typeof piece === "string" ? whole.write(piece, at, "latin1") : piece.copy(whole, at);
  }
  return whole;
}
