import { Agent, request } from "node:http";

/** Streamed calls of a bench, timed to their first token and to their end. */

export interface StreamedCall {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly agent: Agent;
}

export interface StreamedAnswer {
  /** Until the first piece of the model's text. */
  readonly firstMs: number;
  /** Named in the answer's head; "" where it is none. */
  readonly session: string;
}

/** The mock upstream marks each piece of text with the time at which it was written. */
const MARK = "@T";

/** @throws where the answer is no whole stream. */
export function streamCall({ url, headers, body, agent }: StreamedCall): Promise<StreamedAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<StreamedAnswer>();
  const begun = performance.now();
  const sent = request(url, {
    method: "POST",
    agent,
    headers: { ...headers, "content-length": Buffer.byteLength(body) },
  });
  sent.on("error", reject);
  sent.on("response", (response) => {
    let firstMs = 0;
    let tail = "";
    response.setEncoding("latin1");
    response.on("data", (piece: string) => {
      if (firstMs === 0 && piece.includes(MARK)) firstMs = performance.now() - begun;
      tail = (tail + piece).slice(-300);
    });
    response.on("error", reject);
    response.on("end", () => {
      if (response.statusCode !== 200 || !tail.endsWith("data: [DONE]\n\n") || firstMs === 0) {
        reject(new Error(`${url} answered ${response.statusCode}: ${tail}`));
        return;
      }
      resolve({ firstMs, session: String(response.headers["service-session-id"] ?? "") });
    });
  });
  sent.end(body);
  return promise;
}

export function keepAlive(sockets: number): Agent {
  return new Agent({ keepAlive: true, maxSockets: sockets });
}
