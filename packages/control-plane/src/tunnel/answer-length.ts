import { type AnswerHead, HeadRefused } from "@fairlead/wire/tunnel-heads";

/**
 * How many bytes the body of an answer has, or null where only its end tells. The caller is told the same number: a body of another
 * length would put the node's bytes where the caller's connection has its next answer.
 *
 * @throws HeadRefused
 */
export function answerLength(method: string, { status, headers }: AnswerHead): number | null {
  const text = headers["content-length"];
  if (text !== undefined && !/^\d{1,15}$/.test(text)) throw new HeadRefused("a length that is no number");
  // What follows is no body (RFC 9110 §9.3.6).
  if (method === "CONNECT" && status < 300) return null;
  if (method === "HEAD" || status === 204 || status === 304) return 0;
  return text === undefined ? null : Number(text);
}
