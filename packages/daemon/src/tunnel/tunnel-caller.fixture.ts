import { randomInt } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { IncomingCall, IncomingRequest, TunnelCallHandler } from "./tunnel-call.ts";

/** The two ends of a call for tests, which record events and write with backpressure. */

export interface CallerRequest extends Pick<IncomingRequest, "workload" | "kind" | "method" | "path"> {
  /** Includes the token, if any. */
  readonly headers: Readonly<Record<string, string>>;
}

/** At most one of `onEnd` and `onError` is called, and nothing after it or after `abort`. */
export interface CallerHandler {
  onHeaders(status: number, headers: IncomingHttpHeaders): void;
  /** @returns false to pause the response until `resume`. */
  onData(chunk: Buffer): boolean;
  onDrain(): void;
  onEnd(): void;
  onError(error: Error): void;
}

export interface CallerCall {
  /** At most 64 KiB. @returns false to wait for `onDrain`. Does nothing after the call's end. */
  write(chunk: Buffer): boolean;
  end(): void;
  resume(): void;
  abort(): void;
}

const MAX_WRITE_BYTES = 64 * 1024;

/** One direction of a call, from the reader's side. */
class Received {
  length = 0;
  readonly #chunks: Buffer[] = [];

  add(chunk: Buffer): void {
    this.length += chunk.length;
    this.#chunks.push(chunk);
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  toString(): string {
    return this.bytes().toString();
  }
}

/** One direction of a call, from the writer's side. */
class PacedWriter {
  /** Bytes. */
  written = 0;
  readonly #write: (chunk: Buffer) => boolean;
  #goOn: (() => void) | undefined;

  constructor(write: (chunk: Buffer) => boolean) {
    this.#write = write;
  }

  /** Writes in pieces of any length. Resolves when everything was accepted; never if the call ends before. */
  async send(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const piece = bytes.subarray(at, at + randomInt(1, MAX_WRITE_BYTES + 1));
      at += piece.length;
      this.written += piece.length;
      if (this.#write(piece)) continue;
      await new Promise<void>((resolve) => {
        this.#goOn = resolve;
      });
    }
  }

  drained(): void {
    const goOn = this.#goOn;
    this.#goOn = undefined;
    goOn?.();
  }
}

export class TestCaller implements CallerHandler {
  readonly body = new Received();
  readonly writer: PacedWriter;
  status: number | undefined;
  headers: IncomingHttpHeaders = {};
  state: "open" | "whole" | "failed" = "open";
  /** Resolves with the outcome. */
  readonly ended: Promise<"whole" | "failed">;
  readonly #end: (state: "whole" | "failed") => void;
  readonly #call: CallerCall;
  #isPaused = false;

  constructor(open: (handler: CallerHandler) => CallerCall) {
    ({ promise: this.ended, resolve: this.#end } = Promise.withResolvers<"whole" | "failed">());
    this.#call = open(this);
    this.writer = new PacedWriter((chunk) => this.#call.write(chunk));
  }

  end(): void {
    this.#call.end();
  }

  abort(): void {
    this.#call.abort();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#call.resume();
  }

  onHeaders(status: number, headers: IncomingHttpHeaders): void {
    this.status = status;
    this.headers = headers;
  }

  onData(chunk: Buffer): boolean {
    this.body.add(chunk);
    return !this.#isPaused;
  }

  onDrain(): void {
    this.writer.drained();
  }

  onEnd(): void {
    this.#settle("whole");
  }

  onError(): void {
    this.#settle("failed");
  }

  #settle(state: "whole" | "failed"): void {
    if (this.state !== "open") throw new Error(`told of the end twice: ${this.state}, then ${state}`);
    this.state = state;
    this.#end(state);
  }
}

export class TestAnswerer implements TunnelCallHandler {
  readonly call: IncomingCall;
  readonly body = new Received();
  readonly writer: PacedWriter;
  ends = 0;
  closes = 0;
  #isPaused = false;

  constructor(call: IncomingCall) {
    this.call = call;
    this.writer = new PacedWriter((chunk) => call.write(chunk));
    call.handle(this);
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.call.resume();
  }

  onData(chunk: Buffer): boolean {
    this.body.add(chunk);
    return !this.#isPaused;
  }

  onEnd(): void {
    this.ends += 1;
  }

  onDrain(): void {
    this.writer.drained();
  }

  onClose(): void {
    this.closes += 1;
  }
}

/** Echoes the body with backpressure. */
export class EchoHandler implements TunnelCallHandler {
  readonly #call: IncomingCall;

  constructor(call: IncomingCall) {
    this.#call = call;
    call.respond(200, {});
    call.handle(this);
  }

  onData(chunk: Buffer): boolean {
    return this.#call.write(chunk);
  }

  onEnd(): void {
    this.#call.end();
  }

  onDrain(): void {
    this.#call.resume();
  }

  onClose(): void {}
}
