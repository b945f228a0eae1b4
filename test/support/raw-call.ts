import { connect } from "node:net";
import { waitFor } from "./wait-for.ts";

const SEEN_MS = 30_000;
/** What an engine writes in seconds takes longer on a busy machine. */
const END_MS = 100_000;
/** The chunk that ends a chunked answer: without it no client takes the answer for whole. */
const LAST_CHUNK = "\r\n0\r\n\r\n";

export interface RawRequest {
  readonly path: string;
  readonly bearer: string;
  readonly body: object;
}

/** One HTTP call over a bare socket, so that a test sees the very bytes by which an answer ends. */
export class RawCall {
  /** Everything that came, head and chunk framing included. */
  text = "";
  /** Resolves when the connection is gone, by a FIN or by a reset. */
  readonly closed: Promise<void>;
  #isClosed = false;

  constructor(url: string, { path, bearer, body }: RawRequest) {
    const { hostname, port, host } = new URL(url);
    const json = JSON.stringify(body);
    const head = [
      `POST ${path} HTTP/1.1`,
      `host: ${host}`,
      `authorization: Bearer ${bearer}`,
      "content-type: application/json",
      `content-length: ${Buffer.byteLength(json)}`,
      "connection: close",
    ];
    const socket = connect({ host: hostname, port: Number(port) });
    socket.setEncoding("utf8");
    socket.on("data", (piece: string) => {
      this.text += piece;
    });
    socket.on("error", () => undefined);
    this.closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.#isClosed = true;
        resolve();
      });
    });
    socket.write(`${head.join("\r\n")}\r\n\r\n${json}`);
  }

  /** Waits until this has come. */
  async seen(text: string): Promise<void> {
    await waitFor(`${JSON.stringify(text)} in the answer`, SEEN_MS, async () => {
      if (this.text.includes(text)) return true;
      if (this.#isClosed) throw new Error(`the answer ended before: ${this.text}`);
      return false;
    });
  }

  /** Waits for the end. @returns what it looked like. */
  async end(): Promise<{ readonly framedAsWhole: boolean; readonly events: readonly string[] }> {
    await waitFor("the end of the answer", END_MS, async () => this.#isClosed);
    return { framedAsWhole: this.text.endsWith(LAST_CHUNK), events: this.text.match(/^data: .*/gm) ?? [] };
  }
}
