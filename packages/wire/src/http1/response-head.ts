import type { IncomingHttpHeaders } from "node:http";

/** The upstream's response is not valid HTTP/1.1, or is ambiguous. */
export class MalformedAnswer extends Error {
  override readonly name = "MalformedAnswer";
}

/** Limit of a status line, header, trailer or chunk header. */
export const MAX_LINE_BYTES = 16_384;
/** Limit of headers, and of trailers, in one response. */
export const MAX_FIELDS = 256;
/** Larger numbers cannot be represented exactly. */
export const MAX_LENGTH_DIGITS = 13;

export interface ResponseHead {
  readonly status: number;
  /** Minor version of HTTP/1. */
  readonly minor: number;
  readonly headers: IncomingHttpHeaders;
}

/** Only the first of several values counts; other headers are lists (RFC 9110 §5.3). */
export const SINGLE_HEADERS: ReadonlySet<string> = new Set([
  "age",
  "content-encoding",
  "content-location",
  "content-range",
  "content-type",
  "date",
  "etag",
  "expires",
  "last-modified",
  "location",
  "retry-after",
  "server",
]);

const [TAB, SPACE] = [0x09, 0x20];
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** @param head without the empty line, one byte per character. @throws MalformedAnswer */
export function readHead(head: string): ResponseHead {
  const firstEnd = lineEnd(head, 0);
  const status = firstEnd > MAX_LINE_BYTES ? null : STATUS_LINE.exec(head.slice(0, firstEnd));
  if (status === null) throw new MalformedAnswer("it does not begin with a status line");
  const headers: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>;
  let fields = 0;
  for (let from = firstEnd + 2; from < head.length + 2; fields += 1) {
    if (fields === MAX_FIELDS) throw new MalformedAnswer("it has too many headers");
    const end = lineEnd(head, from);
    const colon = fieldColon(head, from, end);
    if (colon === -1) throw new MalformedAnswer("a header cannot be read");
    const name = head.slice(from, colon).toLowerCase();
    // Some parsers do not recognise `chunked` followed by a tab.
    if (name === "transfer-encoding" && head.slice(colon, end).includes("\t"))
      throw new MalformedAnswer("its transfer coding is not `chunked`");
    add(headers, name, trimmed(head, colon + 1, end));
    from = end + 2;
  }
  return { status: Number(status[2]), minor: Number(status[1]), headers };
}

/** @returns whether a line is a valid header or trailer. */
export function isField(line: string): boolean {
  return fieldColon(line, 0, line.length) !== -1;
}

/** How the body ends, and whether the connection closes with it. */
export interface Framing {
  /** Null if the body ends with the connection. */
  readonly length: number | "chunked" | null;
  readonly closes: boolean;
}

/** @throws MalformedAnswer */
export function framingOf({ headers, minor }: ResponseHead): Framing {
  const coding = headers["transfer-encoding"];
  const length = lengthOf(headers);
  const closes = closesAfter(headers, minor);
  if (coding === undefined) return { length, closes };
  if (coding.toLowerCase() !== "chunked") throw new MalformedAnswer("its transfer coding is not `chunked`");
  // RFC 9112 §6.1: sending both may be request smuggling.
  if (length !== null) throw new MalformedAnswer("it states a length and is chunked");
  return { length: "chunked", closes };
}

function closesAfter(headers: IncomingHttpHeaders, minor: number): boolean {
  const { connection, "proxy-connection": proxy } = headers;
  if (connection === undefined && proxy === undefined) return minor === 0;
  // Other parsers follow both.
  const options = `${connection ?? ""},${proxy?.toString() ?? ""}`
    .toLowerCase()
    .split(",")
    .map((option) => option.trim());
  return options.includes("close") || (minor === 0 && !options.includes("keep-alive"));
}

function lengthOf(headers: IncomingHttpHeaders): number | null {
  const length = headers["content-length"];
  if (length === undefined) return null;
  if (length.length > MAX_LENGTH_DIGITS || !/^\d+$/.test(length))
    throw new MalformedAnswer("its length cannot be read");
  return Number(length);
}

function lineEnd(head: string, from: number): number {
  const end = head.indexOf("\r\n", from);
  return end === -1 ? head.length : end;
}

/** @returns the end of the name; -1 if the line is not a field or the name is too long. */
function fieldColon(text: string, from: number, end: number): number {
  const colon = text.indexOf(":", from);
  if (colon === -1 || colon >= end || end - from > MAX_LINE_BYTES) return -1;
  return NAME.test(text.slice(from, colon)) && VALUE.test(text.slice(colon + 1, end)) ? colon : -1;
}

/** The value without surrounding spaces. */
function trimmed(text: string, from: number, end: number): string {
  let first = from;
  let last = end;
  while (first < last && isBlank(text.charCodeAt(first))) first += 1;
  while (last > first && isBlank(text.charCodeAt(last - 1))) last -= 1;
  return text.slice(first, last);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

/** Like Node: only cookies are arrays, so other headers are always strings. */
function add(headers: Record<string, string | string[]>, name: string, value: string): void {
  const former = headers[name];
  if (former === undefined) headers[name] = name === "set-cookie" ? [value] : value;
  else if (typeof former !== "string") former.push(value);
  else if (!SINGLE_HEADERS.has(name)) headers[name] = `${former}, ${value}`;
}
