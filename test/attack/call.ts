import { type OutgoingHttpHeaders, request } from "node:http";

export interface Call {
  readonly url: string;
  readonly method?: string;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
  /** Milliseconds that it may take in all. */
  readonly deadlineMs: number;
  /** Address that it is made from. */
  readonly localAddress?: string;
}

export interface Outcome {
  /** 0 where no response came. */
  readonly status: number;
  readonly text: string;
}

/** One HTTP call. Never throws: what went wrong is in the outcome's text. */
export function call(options: Call): Promise<Outcome> {
  const { hostname, port } = new URL(options.url);
  const { method = "GET", path, body, localAddress, deadlineMs } = options;
  const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
  const headers = { "content-type": "application/json", ...length, ...options.headers };
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    let status = 0;
    const settle = (why: string): void => {
      clearTimeout(timer);
      resolve(why === "" ? { status, text: Buffer.concat(pieces).toString() } : { status: 0, text: why });
    };
    const sent = request({
      hostname,
      port,
      method,
      path,
      headers,
      // A kept connection may be closed by the server in the moment in which it is used again.
      agent: false,
      ...(localAddress === undefined ? {} : { localAddress }),
    });
    const timer = setTimeout(() => {
      settle(`no complete response within ${deadlineMs} ms`);
      sent.destroy();
    }, deadlineMs);
    sent.on("response", (response) => {
      status = response.statusCode ?? 0;
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("error", ({ message }) => settle(message));
      response.on("end", () => settle(""));
    });
    sent.on("error", ({ message }) => settle(message));
    sent.end(body);
  });
}

export const bearer = (secret: string): OutgoingHttpHeaders => ({ authorization: `Bearer ${secret}` });
