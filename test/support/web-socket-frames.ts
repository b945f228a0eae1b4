const TEXT = 1;
const END_OF_HEAD = "\r\n\r\n";

/** Reads the JSON messages out of one direction of a WebSocket (RFC 6455 §5.2). Messages in several frames do not occur here. */
export class JsonFrames {
  readonly #onMessage: (message: unknown) => void;
  #inHead: boolean;
  #bytes: Buffer = Buffer.alloc(0);

  /** @param options.afterHead the direction begins with an HTTP head. */
  constructor({ afterHead }: { readonly afterHead: boolean }, onMessage: (message: unknown) => void) {
    this.#inHead = afterHead;
    this.#onMessage = onMessage;
  }

  push(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    if (this.#inHead) {
      const end = this.#bytes.indexOf(END_OF_HEAD);
      if (end < 0) return;
      this.#bytes = this.#bytes.subarray(end + END_OF_HEAD.length);
      this.#inHead = false;
    }
    for (let frame = readFrame(this.#bytes); frame !== null; frame = readFrame(this.#bytes)) {
      this.#bytes = this.#bytes.subarray(frame.size);
      const text = frame.payload.toString("utf8");
      // The library's own pings are bare words; what it has to say at once, it says as a list.
      if (frame.opcode !== TEXT || !/^[[{]/.test(text)) continue;
      const said: unknown = JSON.parse(text);
      for (const message of Array.isArray(said) ? said : [said]) this.#onMessage(message);
    }
  }
}

interface Frame {
  readonly opcode: number;
  readonly payload: Buffer;
  /** Of the whole frame in bytes. */
  readonly size: number;
}

/** @returns null while the frame is not whole. */
function readFrame(bytes: Buffer): Frame | null {
  if (bytes.length < 2) return null;
  const [first = 0, second = 0] = bytes;
  const short = second & 0x7f;
  const extended = short === 126 ? 2 : short === 127 ? 8 : 0;
  const maskAt = 2 + extended;
  if (bytes.length < maskAt) return null;
  const length = extended === 2 ? bytes.readUInt16BE(2) : extended === 8 ? Number(bytes.readBigUInt64BE(2)) : short;
  const payloadAt = maskAt + (second & 0x80 ? 4 : 0);
  if (bytes.length < payloadAt + length) return null;
  const mask = bytes.subarray(maskAt, payloadAt);
  const payload = Buffer.from(bytes.subarray(payloadAt, payloadAt + length));
  for (let index = 0; mask.length > 0 && index < length; index++)
    payload[index] = (payload[index] ?? 0) ^ (mask[index % 4] ?? 0);
  return { opcode: first & 0x0f, payload, size: payloadAt + length };
}
