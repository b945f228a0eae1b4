import type { ClientRequest, IncomingMessage } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import { answerHeaders } from "./gateway-headers.ts";

const NOTHING = Buffer.alloc(0);

/** One request on its way to a workload and the answer on its way back, each at the pace of its reader. */
export class Forward {
  readonly #stream: ServerHttp2Stream;
  /** Undefined once all is over: Node may keep the stream in memory long after, and with it whatever it leads to. */
  #engine: ClientRequest | undefined;
  #answer: IncomingMessage | undefined;

  constructor(stream: ServerHttp2Stream, engine: ClientRequest) {
    this.#stream = stream;
    this.#engine = engine;
    stream.on("data", (chunk: Buffer) => this.#onBody(chunk));
    stream.on("end", () => this.#onBodyEnd());
    stream.on("drain", () => this.#answer?.resume());
    // The caller is gone, or all is over; also before the answer's headers.
    stream.on("close", () => this.#onClose());
    engine.on("drain", () => stream.resume());
    // Nobody takes the rest of the body any more, but the stream must be able to end.
    engine.on("close", () => stream.resume());
  }

  onAnswer(answer: IncomingMessage): void {
    this.#answer = answer;
    try {
      this.#stream.respond(answerHeaders(answer.statusCode ?? 502, answer.headers));
    } catch (error) {
      this.#break(error);
      return;
    }
    let left = Number(answer.headers["content-length"] ?? Number.NaN);
    answer.on("data", (chunk: Buffer) => {
      left -= chunk.length;
      // The end in one frame with the last bytes.
      if (left === 0) this.#stream.end(chunk);
      else if (!this.#stream.write(chunk)) answer.pause();
    });
    answer.on("end", () => {
      if (left !== 0) this.#stream.end();
    });
    answer.on("error", (error) => this.#break(error));
  }

  #onClose(): void {
    this.#engine?.destroy();
    this.#engine = undefined;
    this.#answer = undefined;
  }

  #onBody(chunk: Buffer): void {
    const engine = this.#engine;
    if (engine !== undefined && !engine.destroyed && !engine.write(chunk)) this.#stream.pause();
  }

  /** A reset stream "ends" too: then the body is cut, and must not look whole to the engine. */
  #onBodyEnd(): void {
    const whole = !this.#stream.aborted && this.#stream.rstCode === constants.NGHTTP2_NO_ERROR;
    if (whole) this.#engine?.end();
    else this.#engine?.destroy();
  }

  /**
   * The engine broke off: what it said is still delivered, then the stream is reset.
   * Only `destroy` with an error does that: Node's `close(code)` first ends the stream as if it were complete.
   */
  #break(cause: unknown): void {
    const stream = this.#stream;
    const reset = (): void => {
      stream.destroy(new Error("the engine broke off", { cause }));
    };
    if (stream.headersSent && !stream.destroyed) stream.write(NOTHING, reset);
    else reset();
  }
}
