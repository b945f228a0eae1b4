import { HeadRefused, type TunnelAnswerHead } from "@fairlead/wire/tunnel-heads";

/**
 * The length of a response body, or null if only its end is known. The client gets the same length: a longer body would put the node's bytes
 * into the client's next response.
 * @throws HeadRefused
 */
export function answerLength(method: string, { status, headers }: TunnelAnswerHead): number | null {
  const text = headers["content-length"];
  if (text !== undefined && !/^\d{1,15}$/.test(text)) throw new HeadRefused("a length that is not a number");
  // No body follows (RFC 9110 §9.3.6).
  if (method === "CONNECT" && status < 300) return null;
  if (method === "HEAD" || status === 204 || status === 304) return 0;
  return text === undefined ? null : Number(text);
}
