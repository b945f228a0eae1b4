import { indexOrEnd } from "../json/byte-search.ts";
import { MemberReader } from "../json/member-reader.ts";

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const COLON = 0x3a;
const LONGEST_FIELD = "event".length;
const LONGEST_TEXT = 64;
/** A stream may begin with one. */
const BYTE_ORDER_MARK = "\xef\xbb\xbf";

/** Reads one event of an event stream: its name, and members of the JSON in its `data`, be that on one line or many. */
export class EventReader {
  readonly members: MemberReader;
  #field = "";
  #inValue = false;
  #atValueStart = false;
  #name = "";
  /** The beginning of the data. */
  #data = "";
  /** The next LF and CR in the bytes that are read now, each searched for once. */
  #lf = -1;
  #cr = -1;

  /** @param paths as for `MemberReader`. */
  constructor(paths: readonly string[]) {
    this.members = new MemberReader(paths);
  }

  /** The field `event`, or "". */
  get name(): string {
    return this.#name;
  }

  /** Whether it is `data: [DONE]`. */
  get isDone(): boolean {
    return this.#data.trim() === "[DONE]";
  }

  push(bytes: Buffer): void {
    let at = 0;
    this.#lf = -1;
    this.#cr = -1;
    while (at < bytes.length) at = this.#inValue ? this.#pushValue(bytes, at) : this.#pushField(bytes, at);
  }

  #pushField(bytes: Buffer, at: number): number {
    const byte = bytes[at];
    if (byte === LF || byte === CR) {
      this.#field = "";
    } else if (byte === COLON) {
      this.#inValue = true;
      this.#atValueStart = true;
      if (this.#field.startsWith(BYTE_ORDER_MARK)) this.#field = this.#field.slice(BYTE_ORDER_MARK.length);
    } else if (this.#field.length <= LONGEST_FIELD + BYTE_ORDER_MARK.length) {
      this.#field += String.fromCharCode(byte ?? 0);
    }
    return at + 1;
  }

  #pushValue(bytes: Buffer, at: number): number {
    const isPadding = this.#atValueStart && bytes[at] === SPACE;
    this.#atValueStart = false;
    if (isPadding) return at + 1;
    const end = this.#lineEnd(bytes, at);
    const part = bytes.subarray(at, end);
    if (this.#field === "data") {
      this.members.push(part);
      if (this.#data.length < LONGEST_TEXT) this.#data += part.toString("latin1", 0, LONGEST_TEXT);
    } else if (this.#field === "event" && this.#name.length < LONGEST_TEXT) {
      this.#name += part.toString("latin1", 0, LONGEST_TEXT);
    }
    if (end === bytes.length) return end;
    this.#inValue = false;
    this.#field = "";
    return end + 1;
  }

  /** @returns the place of the next line end, or the end of these bytes. */
  #lineEnd(bytes: Buffer, from: number): number {
    if (this.#lf < from) this.#lf = indexOrEnd(bytes, LF, from);
    if (this.#cr < from) this.#cr = indexOrEnd(bytes, CR, from);
    return Math.min(this.#lf, this.#cr);
  }
}
