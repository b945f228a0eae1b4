import type { IncomingHttpHeaders } from "node:http";
import { HeadReader, type RequestHead, requestHead, writeHead } from "@fairlead/wire/tunnel-heads";
import type { YamuxStream } from "@fairlead/wire/yamux/stream";

/** A call as it comes out of the tunnel. The node's side of it is played by a test. */
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

export function takeNodeRequest(stream: YamuxStream, onRequest: (request: NodeRequest) => void): void {
  const body = new RequestBody();
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
      onRequest(nodeRequest(stream, read.head, { body, onDrain: (go) => void (drained = go) }));
      return takes || body.isTaken;
    },
    onEnd: () => body.tellEnd(),
    onDrain: () => drained(),
    onClose: () => undefined,
  });
}

interface RequestParts {
  readonly body: RequestBody;
  readonly onDrain: (go: () => void) => void;
}

function nodeRequest(stream: YamuxStream, head: RequestHead, { body, onDrain }: RequestParts): NodeRequest {
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

class RequestBody {
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
