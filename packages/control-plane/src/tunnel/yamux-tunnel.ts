import type { Duplex } from "node:stream";
import { type LivenessOptions, watchLiveness } from "@fairlead/wire/liveness";
import { type RequestKind, writeHead } from "@fairlead/wire/tunnel-heads";
import { YamuxSession } from "@fairlead/wire/yamux/session";
import { lostCall } from "./lost-call.ts";
import { RunningCalls } from "./running-calls.ts";
import type {
  Tunnel,
  TunnelCall,
  TunnelHandler,
  TunnelHead,
  TunnelRequest,
  TunnelStreamCall,
  TunnelStreamHandler,
  TunnelStreamRequest,
} from "./tunnel-transport.ts";
import { YamuxTunnelCall } from "./yamux-tunnel-call.ts";

/** A tunnel over yamux: a stream for each call, all opened by this side. */
export class YamuxTunnel implements Tunnel {
  readonly #session: YamuxSession;
  readonly #calls = new RunningCalls();
  #open = 0;
  #whenDrained: (() => void)[] = [];
  #isDraining = false;

  /** @param onClosed called once, when the last call is over or the tunnel is lost. */
  constructor(socket: Duplex, liveness: LivenessOptions, onClosed: (reason: Error | undefined) => void) {
    this.#session = new YamuxSession({
      socket,
      onClose: (reason) => {
        endWatch();
        this.#calls.tellIdle();
        for (const tell of this.#whenDrained.splice(0)) tell();
        onClosed(reason);
      },
    });
    const endWatch = watchLiveness(this.#session, liveness);
  }

  get usable(): boolean {
    return this.#session.isUsable && !this.#isDraining;
  }

  open(request: TunnelRequest, handler: TunnelHandler): TunnelCall {
    return this.#call(request, {
      kind: request.body.length === 0 ? "no-body" : "body",
      body: request.body,
      handler,
    });
  }

  openStream(request: TunnelStreamRequest, handler: TunnelStreamHandler): TunnelStreamCall {
    const { kind } = request;
    return this.#call(request, { kind, body: kind === "no-body" ? [] : null, handler });
  }

  idle(): Promise<void> {
    return this.#session.isClosed ? Promise.resolve() : this.#calls.idle();
  }

  drain(): Promise<void> {
    if (this.#session.isClosed) return Promise.resolve();
    this.#isDraining = true;
    if (this.#open === 0) this.#session.end();
    return new Promise((resolve) => this.#whenDrained.push(resolve));
  }

  destroy(reason: Error): void {
    this.#session.destroy(reason);
  }

  #call(request: TunnelHead, { kind, body, handler }: Asked): TunnelStreamCall {
    if (!this.usable) return lostCall(handler, new Error("the tunnel is closed"));
    const { workload, method, path, headers } = request;
    const head = writeHead({ workload, kind, method, path, headers });
    const end = this.#calls.begin(request);
    this.#open += 1;
    const onOver = (): void => {
      end();
      this.#open -= 1;
      if (this.#isDraining && this.#open === 0) this.#session.end();
    };
    const asked = kind === "web-socket" ? "CONNECT" : method;
    return new YamuxTunnelCall(this.#session.open(), { method: asked, head, body, handler, onOver });
  }
}

interface Asked {
  readonly kind: RequestKind;
  readonly body: readonly Buffer[] | null;
  readonly handler: TunnelHandler & Partial<TunnelStreamHandler>;
}
