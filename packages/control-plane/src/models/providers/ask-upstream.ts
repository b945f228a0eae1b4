import { codingOf, decodeWhole } from "@fairlead/inference/relay/content-decoder";
import type { UpstreamTransport } from "@fairlead/inference/upstreams/upstream";
import { DomainError } from "@fairlead/protocol/errors";
import { GrowingBuffer } from "@fairlead/wire/growing-buffer";

/** Sends a small request to an upstream with the same credential and checks as calls. */

export interface SmallQuestion {
  /** Relative to the base URL. */
  readonly path: string;
  /** JSON to post; without it: GET. */
  readonly body?: string;
  readonly timeoutMs: number;
}

export interface SmallAnswer {
  readonly status: number;
  readonly text: string;
}

const MAX_BYTES = 8 * 1024 * 1024;
const HEADERS = { accept: "application/json", "accept-encoding": "identity" };

/** @throws DomainError upstream_failed, upstream_timeout */
export function askUpstream(transport: UpstreamTransport, question: SmallQuestion): Promise<SmallAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<SmallAnswer>();
  const answer = new GrowingBuffer();
  let status = 0;
  let coding: string | null = null;
  const giveUp = (error: DomainError): void => {
    call.abort();
    reject(error);
  };
  const call = transport.dispatch(toRequest(question), {
    onHeaders: (answered, headers) => {
      status = answered;
      coding = codingOf(headers);
    },
    onData: (chunk) => {
      if (answer.length + chunk.length > MAX_BYTES)
        giveUp(new DomainError("upstream_failed", "The provider's response is too large."));
      else answer.append(chunk);
      return true;
    },
    onEnd: () => {
      const decoded = decodeWhole(answer.bytes, coding, MAX_BYTES);
      resolve(decoded.then((bytes) => ({ status, text: bytes.toString() }), unreadable));
    },
    onError: reject,
  });
  const late = new DomainError("upstream_timeout", "The provider did not respond in time.");
  const timer = setTimeout(() => giveUp(late), question.timeoutMs);
  return promise.finally(() => clearTimeout(timer));
}

function unreadable(cause: unknown): never {
  throw new DomainError("upstream_failed", "The provider's response cannot be decompressed.", { cause });
}

function toRequest({ path, body }: SmallQuestion): Parameters<UpstreamTransport["dispatch"]>[0] {
  if (body === undefined) return { method: "GET", path, headers: HEADERS, body: [] };
  const bytes = Buffer.from(body);
  const headers = { ...HEADERS, "content-type": "application/json", "content-length": String(bytes.length) };
  return { method: "POST", path, headers, body: [bytes] };
}
