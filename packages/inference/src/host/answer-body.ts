import type { ServerResponse } from "node:http";

/** Up to this size, copying a piece into its frame is cheaper than three writes. */
const COPY_BYTES = 16 * 1024;
const LINE_END = "\r\n";
const LAST_CHUNK = "0\r\n\r\n";

/**
 * Writes a response body after Node has written the head. Node writes each chunk as four pieces; framed here it is one, which
 * matters for streams of small events (docs/performance.md).
 */
export class AnswerBody {
  readonly #response: ServerResponse;
  /** The length is unknown and the caller speaks HTTP/1.1. */
  readonly #chunked: boolean;
  #begun = false;

  /** Call it after `writeHead`, then write only through it. */
  constructor(response: ServerResponse) {
    this.#response = response;
    this.#chunked = response.chunkedEncoding;
    // The head already declares chunked encoding; from here on, Node must not frame again.
    response.chunkedEncoding = false;
  }

  /** @returns false when the caller should wait for the response's `drain`. */
  write(piece: Buffer): boolean {
    const response = this.#response;
    // An empty chunk would end the body.
    if (piece.length === 0) return true;
    if (!this.#chunked) return this.#write(piece);
    const head = piece.length.toString(16) + LINE_END;
    if (piece.length > COPY_BYTES) {
      response.write(head, "latin1");
      response.write(piece);
      return response.write(LINE_END, "latin1");
    }
    const frame = Buffer.allocUnsafe(head.length + piece.length + LINE_END.length);
    frame.write(head, "latin1");
    frame.set(piece, head.length);
    frame.write(LINE_END, head.length + piece.length, "latin1");
    return this.#write(frame);
  }

  /** Node joins the head and the first piece into one write only if both are strings; a small response has no other piece. */
  #write(piece: Buffer): boolean {
    const first = !this.#begun;
    this.#begun = true;
    if (!first || piece.length > COPY_BYTES) return this.#response.write(piece);
    return this.#response.write(piece.toString("latin1"), "latin1");
  }

  end(): void {
    if (this.#chunked) this.#response.end(LAST_CHUNK, "latin1");
    else this.#response.end();
  }
}
