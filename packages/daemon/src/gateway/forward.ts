import type { ClientRequest, IncomingMessage } from "node:http";
import type { TunnelCall, TunnelCallHandler } from "../tunnel/tunnel-call.ts";
import { answerHeaders } from "./gateway-headers.ts";

/** One request on its way to a workload and the answer on its way back, each at the pace of its reader. */
export class Forward implements TunnelCallHandler {
  readonly #call: TunnelCall;
  /** Undefined once all is over. */
  #engine: ClientRequest | undefined;
  #answer: IncomingMessage | undefined;

  constructor(call: TunnelCall, engine: ClientRequest) {
    this.#call = call;
    this.#engine = engine;
    engine.on("drain", () => call.resume());
    // Nobody takes the rest of the body any more, but the call must be able to end.
    engine.on("close", () => call.resume());
    call.handle(this);
  }

  onAnswer(answer: IncomingMessage): void {
    const call = this.#call;
    this.#answer = answer;
    try {
      call.respond(answer.statusCode ?? 502, answerHeaders(answer.headers));
    } catch (error) {
      this.#break(error);
      return;
    }
    let left = Number(answer.headers["content-length"] ?? Number.NaN);
    answer.on("data", (chunk: Buffer) => {
      left -= chunk.length;
      // The end in one frame with the last bytes.
      if (left === 0) call.end(chunk);
      else if (!call.write(chunk)) answer.pause();
    });
    answer.on("end", () => {
      if (left !== 0) call.end();
    });
    answer.on("error", (error) => this.#break(error));
  }

  onData(chunk: Buffer): boolean {
    const engine = this.#engine;
    return engine === undefined || engine.destroyed || engine.write(chunk);
  }

  onEnd(): void {
    this.#engine?.end();
  }

  onDrain(): void {
    this.#answer?.resume();
  }

  /** Also where the caller left before the answer's headers, or in the middle of its body. */
  onClose(): void {
    this.#engine?.destroy();
    this.#engine = undefined;
    this.#answer = undefined;
  }

  #break(cause: unknown): void {
    this.#call.break(new Error("the engine broke off", { cause }));
  }
}
