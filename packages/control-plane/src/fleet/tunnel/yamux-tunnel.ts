import type { Duplex } from "node:stream";
import { LOGS_WORKLOAD } from "@fairlead/protocol/daemon-link";
import { watchLiveness } from "@fairlead/wire/liveness";
import { HeadTooLarge, type RequestKind, writeHead } from "@fairlead/wire/tunnel-heads";
import type {
  StreamTransport,
  TunnelCall,
  TunnelHandler,
  TunnelHead,
  TunnelRequest,
  TunnelStreamCall,
  TunnelStreamHandler,
  TunnelStreamRequest,
} from "@fairlead/wire/tunnel-transport";
import { YamuxSession } from "@fairlead/wire/yamux/session";
import type { TunnelOptions } from "./tunnel-options.ts";
import { YamuxTunnelCall } from "./yamux-tunnel-call.ts";

/** Counts the running calls to workloads in one tunnel. */
class RunningCalls {
  #count = 0;
  #whenIdle: (() => void)[] = [];

  /** @returns a function to call once, when the call ends. */
  begin({ workload }: TunnelHead): () => void {
    // The daemon's own services do not count.
    if (workload === LOGS_WORKLOAD) return () => undefined;
    this.#count += 1;
    return () => {
      this.#count -= 1;
      if (this.#count === 0) this.tellIdle();
    };
  }

  /** Resolves when none is running. */
  idle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  /** The tunnel is closed, and all calls with it. */
  tellIdle(): void {
    for (const tell of this.#whenIdle.splice(0)) tell();
  }
}

/** A daemon's yamux connection with one stream per call; this side opens all streams. */
export class YamuxTunnel implements StreamTransport {
  readonly #session: YamuxSession;
  readonly #calls = new RunningCalls();
  readonly #bounds: TunnelOptions["bounds"];
  #open = 0;
  #isDraining = false;

  /** @param onClosed called once, after the last call or when the tunnel is lost. */
  constructor(
    socket: Duplex,
    { liveness, clock, bounds }: TunnelOptions,
    onClosed: (reason: Error | undefined) => void,
  ) {
    this.#bounds = bounds;
    this.#session = new YamuxSession({
      socket,
      clock,
      onClose: (reason) => {
        endWatch();
        this.#calls.tellIdle();
        onClosed(reason);
      },
    });
    const endWatch = watchLiveness(this.#session, liveness);
  }

  /** Whether new calls can be made. */
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

  /** Resolves when no call to a workload is running. */
  idle(): Promise<void> {
    return this.#session.isClosed ? Promise.resolve() : this.#calls.idle();
  }

  /** Accepts no new calls and closes after the last one. */
  drain(): void {
    this.#isDraining = true;
    if (this.#open === 0) this.#session.end();
  }

  /** Fails every call immediately. */
  destroy(reason: Error): void {
    this.#session.destroy(reason);
  }

  #call(request: TunnelHead, { kind, body, handler }: Asked): TunnelStreamCall {
    if (!this.usable) return lostCall(handler, new Error("the tunnel is closed"));
    const { workload, method, path, headers } = request;
    let head: Buffer;
    try {
      head = writeHead({ workload, kind, method, path, headers });
    } catch (error) {
      if (!(error instanceof HeadTooLarge)) throw error;
      return lostCall(handler, error);
    }
    const end = this.#calls.begin(request);
    this.#open += 1;
    const onOver = (): void => {
      end();
      this.#open -= 1;
      if (this.#isDraining && this.#open === 0) this.#session.end();
    };
    const asked = kind === "web-socket" ? "CONNECT" : method;
    return new YamuxTunnelCall(this.#session.open(), {
      method: asked,
      head,
      body,
      handler,
      onOver,
      bounds: this.#bounds,
    });
  }
}

interface Asked {
  readonly kind: RequestKind;
  readonly body: readonly Buffer[] | null;
  readonly handler: TunnelHandler & Partial<TunnelStreamHandler>;
}

/** A call on a closed tunnel; fails asynchronously, so that the caller has the handle first. */
function lostCall(handler: TunnelHandler, error: Error): TunnelStreamCall {
  let aborted = false;
  setImmediate(() => {
    if (!aborted) handler.onError(error);
  });
  return {
    write: () => true,
    end: () => undefined,
    resume: () => undefined,
    abort: () => {
      aborted = true;
    },
  };
}
