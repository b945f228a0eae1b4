import { DomainError } from "@fairlead/protocol/errors";
import type { FarEnd, UpstreamFixture } from "../upstreams/upstream.contract.ts";
import type { UpstreamCall, UpstreamHandler, UpstreamRequest, UpstreamTransport } from "../upstreams/upstream.ts";

/** An upstream in memory, whose far end the test plays. Calls back at once, so that a test sees every step. */
export class ScriptedUpstream implements UpstreamTransport, UpstreamFixture {
  readonly upstream = this;
  readonly calls: ScriptedCall[] = [];
  readonly #waiting: ((call: FarEnd) => void)[] = [];

  dispatch(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    const call = new ScriptedCall(request, handler);
    this.calls.push(call);
    this.#waiting.shift()?.(call);
    return call;
  }

  nextCall(): Promise<FarEnd> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

export class ScriptedCall implements UpstreamCall, FarEnd {
  readonly request: FarEnd["request"];
  closed = false;
  resumed = 0;
  readonly #handler: UpstreamHandler;
  readonly #held: (() => void)[] = [];
  #paused = false;

  constructor(request: UpstreamRequest, handler: UpstreamHandler) {
    const { path, headers } = request;
    this.request = Promise.resolve({ path: `/v1${path}`, headers, body: Buffer.concat(request.body) });
    this.#handler = handler;
  }

  resume(): void {
    this.resumed++;
    this.#paused = false;
    this.#flush();
  }

  abort(): void {
    this.closed = true;
  }

  respond(status: number, headers: Readonly<Record<string, string>>): void {
    this.#say(() => this.#handler.onHeaders(status, headers));
  }

  write(text: string | Buffer): void {
    this.#say(() => {
      this.#paused = !this.#handler.onData(Buffer.from(text));
    });
  }

  end(): void {
    this.#say(() => this.#handler.onEnd());
  }

  cut(): void {
    this.#say(() => this.fail(new DomainError("upstream_failed", "The upstream broke off.")));
  }

  fail(error: DomainError): void {
    this.#handler.onError(error);
  }

  #say(step: () => void): void {
    this.#held.push(step);
    this.#flush();
  }

  #flush(): void {
    while (!this.#paused && !this.closed) {
      const step = this.#held.shift();
      if (step === undefined) return;
      step();
    }
  }
}
