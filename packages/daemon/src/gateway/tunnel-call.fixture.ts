import type { IncomingHttpHeaders } from "node:http";
import type { IncomingCall, IncomingRequest, TunnelCallHandler } from "../tunnel/tunnel-call.ts";

/** A call controlled by the test. */
export class TestCall implements IncomingCall {
  readonly request: IncomingRequest;
  status = 0;
  headers: IncomingHttpHeaders = {};
  readonly chunks: Buffer[] = [];
  /** Bytes passed to `end`. */
  last: number | undefined;
  state: "open" | "whole" | "broken" | "left" = "open";
  /** Whether the request body is paused. */
  isPaused = false;
  /** Whether the response is paused. */
  takes = true;
  handler: TunnelCallHandler | undefined;
  readonly #onResume: (() => void)[] = [];

  constructor(request: Partial<IncomingRequest> = {}) {
    const defaults = { workload: "engine", token: undefined, kind: "no-body", method: "GET", path: "/" } as const;
    this.request = { ...defaults, headers: {}, ...request };
  }

  get isClosed(): boolean {
    return this.state === "broken" || this.state === "left";
  }

  get isAnswered(): boolean {
    return this.status !== 0;
  }

  get body(): Buffer {
    return Buffer.concat(this.chunks);
  }

  /** Sends part of the request body. Resolves when more can be sent. */
  async say(chunk: Buffer): Promise<void> {
    if (this.handler?.onData(chunk) !== false) return;
    this.isPaused = true;
    await new Promise<void>((resolve) => this.#onResume.push(resolve));
  }

  leave(): void {
    this.state = "left";
    this.handler?.onClose();
  }

  handle(handler: TunnelCallHandler): void {
    this.handler = handler;
  }

  onceClosed(): void {}

  respond(status: number, headers: IncomingHttpHeaders): void {
    if ("x-refused" in headers) throw new TypeError("a header that cannot be sent");
    this.status = status;
    this.headers = headers;
  }

  write(chunk: Buffer): boolean {
    this.chunks.push(chunk);
    return this.takes;
  }

  end(last?: Buffer): void {
    if (this.state !== "open") throw new Error(`ended while it is ${this.state}`);
    if (last !== undefined) this.chunks.push(last);
    this.last = last?.length ?? 0;
    this.state = "whole";
    // Both bodies are complete.
    if (this.request.kind === "no-body") this.handler?.onClose();
  }

  resume(): void {
    this.isPaused = false;
    for (const resume of this.#onResume.splice(0)) resume();
  }

  break(): void {
    this.state = "broken";
  }
}
