import { parseJson } from "@fairlead/protocol/values/parse-json";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;

/** Nothing that is wanted is longer, and what is must not cost more. */
const MAX_MEMBER_BYTES = 8 * 1024;
/** Pieces of one byte would cost a hundred times as much as the member. */
const MAX_PIECES = 64;

/**
 * Reads single members of a JSON object of any size, in whatever pieces it comes, in a few kilobytes of memory. What stands
 * deeper, or in a string, is never taken for one of them: answers repeat their callers' own words.
 */
export class MemberReader {
  readonly #paths: readonly string[];
  /** By path; null for one that was too long. */
  readonly #found = new Map<string, string | null>();
  #depth = 0;
  #inString = false;
  #escaped = false;
  #isObject = false;
  /** Whether the second level is an object of which members are wanted. */
  #inParent = false;
  #wantsKey = false;
  #wantsValue = false;
  /** The last member of the first level. */
  #parent = "";
  #path = "";
  #taking: "key" | "value" | null = null;
  #takingDepth = 0;
  #taken: Buffer[] = [];
  #takenBytes = 0;

  /** @param paths `usage`, or `response.usage` for a member of a member. */
  constructor(paths: readonly string[]) {
    this.#paths = paths;
  }

  /** @returns the member's JSON text; null if it was too long, undefined if there is none. */
  text(path: string): string | null | undefined {
    return this.#found.get(path);
  }

  /** @returns undefined also for a member that was too long, or is no JSON. */
  value(path: string): unknown {
    const text = this.#found.get(path);
    // Most often there is none, and an exception would cost more than all the rest.
    if (text === undefined || text === null) return undefined;
    try {
      return parseJson(text);
    } catch {
      return undefined;
    }
  }

  /** Whether an object was read from its beginning to its end. */
  get isWhole(): boolean {
    return this.#isObject && this.#depth === 0 && !this.#inString;
  }

  push(bytes: Buffer): void {
    /** Where what is being taken begins in these bytes. */
    let from = 0;
    let at = 0;
    while (at < bytes.length) {
      if (this.#inString) {
        at = this.#skipString(bytes, at);
        if (!this.#inString && this.#taking === "key") this.#endKey(bytes.subarray(from, at - 1));
        continue;
      }
      const byte = bytes[at++];
      if (byte === QUOTE) {
        this.#inString = true;
        if (this.#wantsKey) {
          this.#begin("key");
          from = at;
        }
      } else if (byte === COLON) {
        if (this.#wantsValue && this.#beginValue()) from = at;
      } else if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        if (this.#endsValue) this.#endValue(bytes.subarray(from, at - 1));
        if (byte === COMMA) this.#wantsKey = this.#amongMembers;
        else this.#close();
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        this.#open(byte === OPEN_BRACE);
      }
    }
    if (this.#taking !== null) this.#take(bytes.subarray(from));
  }

  /** @returns the place after the closing quote, or the end of these bytes. */
  #skipString(bytes: Buffer, start: number): number {
    let at = start;
    if (this.#escaped) {
      this.#escaped = false;
      at++;
    }
    for (;;) {
      const quote = bytes.indexOf(QUOTE, at);
      const end = quote === -1 ? bytes.length : quote;
      let before = end;
      while (before > at && bytes[before - 1] === BACKSLASH) before--;
      const escapes = (end - before) % 2 === 1;
      if (quote === -1) {
        this.#escaped = escapes;
        return end;
      }
      at = quote + 1;
      if (escapes) continue;
      this.#inString = false;
      return at;
    }
  }

  get #amongMembers(): boolean {
    return (this.#depth === 1 && this.#isObject) || (this.#depth === 2 && this.#inParent);
  }

  #open(isObject: boolean): void {
    this.#depth++;
    if (this.#depth === 1) this.#isObject = isObject;
    else if (this.#depth === 2) this.#inParent = isObject && this.#isObject && this.#hasWanted(`${this.#parent}.`);
    this.#wantsKey = isObject && this.#amongMembers;
  }

  #close(): void {
    this.#depth--;
    this.#wantsKey = false;
  }

  #hasWanted(prefix: string): boolean {
    return this.#paths.some((path) => path.startsWith(prefix));
  }

  #endKey(rest: Buffer): void {
    const key = this.#mayBeWanted(this.#takenBytes + rest.length) ? (this.#finish(rest) ?? "") : this.#drop();
    if (this.#depth === 1) this.#parent = key;
    this.#path = this.#depth === 1 ? key : `${this.#parent}.${key}`;
    this.#wantsKey = false;
    this.#wantsValue = true;
  }

  /** By its length alone: most keys need not be read to know that they are none of ours. */
  #mayBeWanted(length: number): boolean {
    const end = this.#depth === 1 ? length : this.#parent.length + 1 + length;
    for (const path of this.#paths) if (path.length === end || path[end] === ".") return true;
    return false;
  }

  #beginValue(): boolean {
    this.#wantsValue = false;
    if (!this.#paths.includes(this.#path)) return false;
    this.#begin("value");
    return true;
  }

  get #endsValue(): boolean {
    return this.#taking === "value" && this.#depth === this.#takingDepth;
  }

  #endValue(rest: Buffer): void {
    this.#found.set(this.#path, this.#finish(rest));
  }

  #begin(what: "key" | "value"): void {
    this.#taking = what;
    this.#takingDepth = this.#depth;
  }

  #take(bytes: Buffer): void {
    this.#takenBytes += bytes.length;
    // A copy, since these bytes may be a small piece of a large read.
    if (this.#takenBytes > MAX_MEMBER_BYTES) return;
    if (this.#taken.length === MAX_PIECES) this.#taken = [Buffer.concat(this.#taken)];
    this.#taken.push(Buffer.from(bytes));
  }

  #finish(rest: Buffer): string | null {
    const fits = this.#takenBytes + rest.length <= MAX_MEMBER_BYTES;
    const bytes = this.#takenBytes === 0 ? rest : Buffer.concat([...this.#taken, rest]);
    const text = fits ? bytes.toString() : null;
    this.#drop();
    return text;
  }

  #drop(): string {
    this.#taking = null;
    if (this.#takenBytes > 0) {
      this.#taken = [];
      this.#takenBytes = 0;
    }
    return "";
  }
}
