import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { systemClock } from "@fairlead/protocol/values/clock";
import { answerHead, HeadReader, type TunnelAnswerHead, writeHead } from "@fairlead/wire/tunnel-heads";
import { YamuxSession } from "@fairlead/wire/yamux/session";
import type { YamuxStream, YamuxStreamHandler } from "@fairlead/wire/yamux/stream";
import type { IncomingCallHandler } from "./tunnel-call.ts";
import type { CallerCall, CallerHandler, CallerRequest } from "./tunnel-caller.fixture.ts";
import { serveTunnel } from "./tunnel-server.ts";
import type { TunnelHarness } from "./tunnel-stage.fixture.ts";

/** Two ends of a loopback connection. */
export async function socketPair(): Promise<{ readonly near: Socket; readonly far: Socket }> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const taken = once(server, "connection");
  const near = connect(address.port, "127.0.0.1");
  const [[far]] = (await Promise.all([taken, once(near, "connect")])) as [[Socket], unknown];
  server.close();
  return { near, far };
}

/** The daemon's end of a tunnel, with a caller at the other end. */
export async function openTestTunnel(handler: IncomingCallHandler): Promise<TunnelHarness> {
  const { near, far } = await socketPair();
  const stop = new AbortController();
  const served = serveTunnel(
    { socket: near, head: Buffer.alloc(0) },
    { handler, clock: systemClock, liveness: { pingIntervalMs: 10_000, pingTimeoutMs: 10_000 }, signal: stop.signal },
  );
  const session = new YamuxSession({ socket: far, clock: systemClock, onClose: () => undefined });
  return {
    open: (request, caller) => new YamuxCaller(session.open(), request, caller),
    lose: () => far.resetAndDestroy(),
    close: async () => {
      stop.abort();
      session.destroy();
      await served;
    },
  };
}

/** The caller's side of one call. */
export class YamuxCaller implements CallerCall, YamuxStreamHandler {
  readonly #stream: YamuxStream;
  #handler: CallerHandler | undefined;
  /** Null after the response's head was delivered. */
  #head: HeadReader<TunnelAnswerHead> | null = new HeadReader(answerHead);

  constructor(stream: YamuxStream, request: CallerRequest, handler: CallerHandler) {
    this.#stream = stream;
    this.#handler = handler;
    stream.handle(this);
    if (request.kind === "no-body") stream.end(writeHead(request));
    else stream.write(writeHead(request));
  }

  write(chunk: Buffer): boolean {
    return this.#stream.write(chunk);
  }

  end(): void {
    this.#stream.end();
  }

  resume(): void {
    this.#stream.resume();
  }

  abort(): void {
    this.#handler = undefined;
    this.#stream.reset();
  }

  onData(chunk: Buffer): boolean {
    if (this.#head === null) return this.#handler?.onData(chunk) ?? true;
    const read = this.#head.push(chunk);
    if (read === null) return true;
    this.#head = null;
    this.#handler?.onHeaders(read.head.status, read.head.headers);
    return read.rest.length === 0 || (this.#handler?.onData(read.rest) ?? true);
  }

  onEnd(): void {
    if (this.#head === null) this.#take()?.onEnd();
    else this.#take()?.onError(new Error("the answer has no head"));
    // The response may arrive before the whole request was accepted.
    this.#stream.reset();
  }

  onDrain(): void {
    this.#handler?.onDrain();
  }

  onClose(failure: Error | null): void {
    this.#take()?.onError(failure ?? new Error("the call has ended before its answer"));
  }

  #take(): CallerHandler | undefined {
    const handler = this.#handler;
    this.#handler = undefined;
    return handler;
  }
}
