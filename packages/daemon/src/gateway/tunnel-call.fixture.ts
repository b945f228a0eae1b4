import type { IncomingHttpHeaders } from "node:http";
import type { TunnelCall, TunnelCallHandler, TunnelRequest } from "../tunnel/tunnel-call.ts";

/** A call whose other side is the test. */
export class TestCall implements TunnelCall {
  readonly request: TunnelRequest;
  status = 0;
  headers: IncomingHttpHeaders = {};
  readonly chunks: Buffer[] = [];
  /** Bytes that `end` brought. */
  last: number | undefined;
  state: "open" | "whole" | "broken" | "left" = "open";
  /** Whether the body must wait. */
  isPaused = false;
  /** Whether the answer must. */
  takes = true;
  handler: TunnelCallHandler | undefined;
  readonly #onResume: (() => void)[] = [];

  constructor(request: Partial<TunnelRequest> = {}) {
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

  /** What the caller says. Resolves when it may say more. */
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
    // Both bodies are: nothing is left to wait for.
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
