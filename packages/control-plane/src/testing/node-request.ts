import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { TUNNEL_WORKLOAD_HEADER } from "@fairlead/protocol/daemon-link";
import { HeadReader, type RequestHead, requestHead, writeHead } from "@fairlead/wire/tunnel-heads";
import type { YamuxStream } from "@fairlead/wire/yamux/stream";

/** A call as it comes out of the tunnel, whatever the tunnel speaks. The node's side of it is played by a test. */
export interface NodeRequest {
  readonly workload: string;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Nothing of the request's body is taken before. Resolves with all of it, and never where the call is over before. */
  takeBody(): Promise<Buffer>;
  respond(status: number, headers?: Readonly<Record<string, string>>): void;
  /** @returns false when it is time to wait for what `onDrain` tells. */
  write(chunk: string | Buffer): boolean;
  onDrain(go: () => void): void;
  end(last?: string): void;
  /** Breaks off, after all that was written. */
  cut(): void;
  readonly isClosed: boolean;
}

export function h2Request(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): NodeRequest {
  stream.on("error", () => undefined);
  return {
    workload: String(headers[TUNNEL_WORKLOAD_HEADER]),
    method: headers[":method"] ?? "",
    path: headers[":path"] ?? "",
    headers,
    takeBody: () => h2Body(stream),
    respond: (status, answer) => stream.respond({ ":status": status, ...answer }),
    write: (chunk) => stream.write(chunk),
    onDrain: (go) => void stream.on("drain", go),
    end: (last) => void stream.end(last),
    cut: () => {
      const broken = (): void => void stream.destroy(new Error("cut"));
      if (stream.headersSent) stream.write("", broken);
      else broken();
    },
    get isClosed() {
      return stream.closed;
    },
  };
}

function h2Body(stream: ServerHttp2Stream): Promise<Buffer> {
  const pieces: Buffer[] = [];
  stream.on("data", (piece: Buffer) => void pieces.push(piece));
  return new Promise((resolve) => {
    stream.once("end", () => stream.rstCode === constants.NGHTTP2_NO_ERROR && resolve(Buffer.concat(pieces)));
  });
}

export function takeYamuxRequest(stream: YamuxStream, onRequest: (request: NodeRequest) => void): void {
  const body = new YamuxBody();
  const head = new HeadReader(requestHead);
  let isRead = false;
  let drained = (): void => undefined;
  stream.handle({
    onData: (chunk) => {
      if (isRead) return body.push(chunk);
      const read = head.push(chunk);
      if (read === null) return true;
      isRead = true;
      const takes = body.push(read.rest);
      onRequest(yamuxRequest(stream, read.head, { body, onDrain: (go) => void (drained = go) }));
      return takes || body.isTaken;
    },
    onEnd: () => body.tellEnd(),
    onDrain: () => drained(),
    onClose: () => undefined,
  });
}

interface YamuxParts {
  readonly body: YamuxBody;
  readonly onDrain: (go: () => void) => void;
}

function yamuxRequest(stream: YamuxStream, head: RequestHead, { body, onDrain }: YamuxParts): NodeRequest {
  const { workload, method, path, headers } = head;
  return {
    workload,
    method,
    path,
    headers,
    takeBody: () => {
      body.isTaken = true;
      stream.resume();
      return body.whole;
    },
    respond: (status, answer = {}) => void stream.write(writeHead({ status, headers: answer })),
    write: (chunk) => stream.write(Buffer.from(chunk)),
    onDrain,
    end: (last = "") => stream.end(Buffer.from(last)),
    cut: () => stream.resetWhenSent(),
    get isClosed() {
      return stream.isClosed;
    },
  };
}

class YamuxBody {
  readonly #pieces: Buffer[] = [];
  isTaken = false;
  tellEnd: () => void = () => undefined;
  readonly whole = new Promise<Buffer>((resolve) => {
    this.tellEnd = () => resolve(Buffer.concat(this.#pieces));
  });

  /** @returns whether it takes more */
  push(piece: Buffer): boolean {
    this.#pieces.push(piece);
    return this.isTaken;
  }
}
