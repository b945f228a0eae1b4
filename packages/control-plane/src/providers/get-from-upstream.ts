import { DomainError } from "@fairlead/protocol/errors";
import type { UpstreamTransport } from "../inference/upstream.ts";

/** Asks an upstream for something small, by the way that its calls go: the same credential, the same guards. */

export interface SmallAnswer {
  readonly status: number;
  readonly text: string;
}

const MAX_BYTES = 8 * 1024 * 1024;
const HEADERS = { accept: "application/json", "accept-encoding": "identity" };

/** @param path below the base URL, with `/v1` in its place. @throws DomainError upstream_failed, upstream_timeout */
export function getFromUpstream(
  transport: UpstreamTransport,
  path: string,
  { timeoutMs }: { readonly timeoutMs: number },
): Promise<SmallAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<SmallAnswer>();
  const pieces: Buffer[] = [];
  let status = 0;
  let bytes = 0;
  const giveUp = (error: DomainError): void => {
    call.abort();
    reject(error);
  };
  const call = transport.dispatch(
    { method: "GET", path, headers: HEADERS, body: [] },
    {
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
    },
  );
  const timer = setTimeout(
    () => giveUp(new DomainError("upstream_timeout", "The provider did not answer in time.")),
    timeoutMs,
  );
  return promise.finally(() => clearTimeout(timer));
}
