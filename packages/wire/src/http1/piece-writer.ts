import type { Socket } from "node:net";
import { atEndOfTurn } from "../end-of-turn.ts";

/** Pieces up to this total are joined into one write. */
const ONE_PIECE_BYTES = 16_384;

/** Buffers small pieces until the end of the turn; large ones are written immediately. */
export class PieceWriter {
  readonly #socket: Socket;
  #pieces: (string | Buffer)[] = [];
  #bytes = 0;
  #isDue = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Whether everything was handed to the operating system. */
  get isEmpty(): boolean {
    return this.#bytes === 0 && this.#socket.writableLength === 0;
  }

  /** @param piece strings are Latin-1. Does nothing if the socket is closed. */
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
