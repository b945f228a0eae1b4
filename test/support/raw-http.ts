import { type Agent, request } from "node:http";

export interface RawCall {
  readonly url: string;
  readonly method: string;
  /** Sent as it is: neither `..` nor `%2F` is put right on the way. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer | undefined;
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** A call as no well-meaning client would send it. Resolves with the answer, also where the server did not want the whole body. */
export function rawCall(agent: Agent, call: RawCall): Promise<RawAnswer> {
  const { hostname, port } = new URL(call.url);
  return new Promise((resolve, reject) => {
    const body = call.body === undefined ? undefined : Buffer.from(call.body);
    const headers = { ...call.headers, ...(body ? { "content-length": String(body.length) } : {}) };
    const sent = request({ agent, hostname, port, method: call.method, path: call.path, headers }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(pieces).toString();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
