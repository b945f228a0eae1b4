import type { Transform } from "node:stream";
import { DomainError } from "@fairlead/protocol/errors";
import type { UpstreamCall } from "../upstreams/upstream.ts";

/** Receives decoded data. */
export interface DecodedHandler {
  /** @returns false to pause until `resume`. */
  onDecoded(bytes: Buffer): boolean;
  onDecodedEnd(): void;
  onUndecodable(error: DomainError): void;
}

/** Decodes the compressed body of one response. The receiver limits its size. */
export class ResponseDecoder implements UpstreamCall {
  readonly #call: UpstreamCall;
  readonly #decoder: Transform;
  #isOver = false;

  /** @param call the owner of the body. */
  constructor(call: UpstreamCall, decoder: Transform, handler: DecodedHandler) {
    this.#call = call;
    this.#decoder = decoder;
    decoder.on("data", (bytes: Buffer) => {
      if (!(this.#isOver || handler.onDecoded(bytes))) decoder.pause();
    });
    decoder.on("drain", () => {
      if (!this.#isOver) call.resume();
    });
    decoder.on("end", () => {
      if (!this.#isOver) handler.onDecodedEnd();
    });
    decoder.on("error", (cause) => {
      if (!this.#isOver) handler.onUndecodable(notDecodable(cause));
    });
  }

  /** @returns false to pause the upstream, which is resumed from here. */
  write(bytes: Buffer): boolean {
    return this.#isOver || this.#decoder.write(bytes);
  }

  end(): void {
    this.#decoder.end();
  }

  /** Continues with decoded data. */
  resume(): void {
    this.#decoder.resume();
  }

  abort(): void {
    this.drop();
    this.#call.abort();
  }

  /** Stops decoding. */
  drop(): void {
    this.#isOver = true;
    this.#decoder.destroy();
  }
}

function notDecodable(cause: Error): DomainError {
  return new DomainError("upstream_failed", "returned a body that does not match its content-encoding", { cause });
}
