import { DomainError } from "@fairlead/protocol/errors";
import type { UpstreamTransport } from "../inference/upstream.ts";

/** Asks an upstream for something small, by the way that its calls go: the same credential, the same guards. */

export interface SmallQuestion {
  /** Below the base URL. */
  readonly path: string;
  /** JSON to post; none: GET. */
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
  const pieces: Buffer[] = [];
  let status = 0;
  let bytes = 0;
  const giveUp = (error: DomainError): void => {
    call.abort();
    reject(error);
  };
  const call = transport.dispatch(toRequest(question), {
    onHeaders: (answered) => {
      status = answered;
    },
    onData: (chunk) => {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) giveUp(new DomainError("upstream_failed", "The provider's answer is too large."));
      else pieces.push(chunk);
      return true;
    },
    onEnd: () => resolve({ status, text: Buffer.concat(pieces).toString() }),
    onError: reject,
  });
  const late = new DomainError("upstream_timeout", "The provider did not answer in time.");
  const timer = setTimeout(() => giveUp(late), question.timeoutMs);
  return promise.finally(() => clearTimeout(timer));
}

function toRequest({ path, body }: SmallQuestion): Parameters<UpstreamTransport["dispatch"]>[0] {
  if (body === undefined) return { method: "GET", path, headers: HEADERS, body: [] };
  const bytes = Buffer.from(body);
  const headers = { ...HEADERS, "content-type": "application/json", "content-length": String(bytes.length) };
  return { method: "POST", path, headers, body: [bytes] };
}
