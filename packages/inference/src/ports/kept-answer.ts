/** A stored response and its encoding. Pure. */

export interface KeptAnswer {
  readonly status: number;
  /** Those that describe the body. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Longer responses are not stored; chat responses are far shorter. */
export const MAX_ANSWER_BYTES = 1024 * 1024;

const LINE_END = 0x0a;

export function toBytes({ status, headers, body }: KeptAnswer): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify({ status, headers })}\n`), body]);
}

export function fromBytes(bytes: Uint8Array): KeptAnswer {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const end = buffer.indexOf(LINE_END);
  const head = JSON.parse(buffer.toString("utf8", 0, end)) as Omit<KeptAnswer, "body">;
  return { ...head, body: buffer.subarray(end + 1) };
}

/** Identifies the call; its response is encrypted under this name. IDs and keys contain no line breaks. */
export function answerName({
  projectId,
  callerId,
  key,
}: {
  readonly projectId: string;
  readonly callerId: string;
  readonly key: string;
}): string {
  return ["answer", projectId, callerId, key].join("\n");
}
