/** What is kept of an answer, and how it rests. Pure. */

export interface KeptAnswer {
  readonly status: number;
  /** Those that tell what the body is. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Longer answers are not kept: what a chat says is far shorter. */
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

/** Which call it is, and what its answer is sealed under. Neither ids nor keys hold a line's end. */
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
