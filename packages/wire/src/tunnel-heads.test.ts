import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import {
  answerHead,
  HeadReader,
  HeadRefused,
  HeadTooLarge,
  MAX_HEAD_BYTES,
  requestHead,
  type TunnelAnswerHead,
  writeHead,
} from "./tunnel-heads.ts";

const ANSWER: TunnelAnswerHead = {
  status: 200,
  headers: { "content-type": "text/plain", "x-latin": "caf\u{e9} \u{80}\u{ff}\t~", "set-cookie": ["a=1", "b=2"] },
};

/** A head of any text, as a careless or hostile other side writes it. */
function headOf(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

const readAnswer = (text: string): unknown => new HeadReader(answerHead).push(headOf(text))?.head;
const readRequest = (value: unknown): unknown => new HeadReader(requestHead).push(headOf(JSON.stringify(value)))?.head;

/** Reads pieces up to the one with which the head is whole. */
function read(pieces: readonly Buffer[]): { head: TunnelAnswerHead; body: string } | null {
  const reader = new HeadReader(answerHead);
  for (const [at, piece] of pieces.entries()) {
    const whole = reader.push(piece);
    if (whole !== null) {
      return { head: whole.head, body: Buffer.concat([whole.rest, ...pieces.slice(at + 1)]).toString() };
    }
  }
  return null;
}

describe("a head on a tunnel stream", () => {
  test("is read, with the body after it, wherever its bytes are split", () => {
    const bytes = Buffer.concat([writeHead(ANSWER), Buffer.from("body")]);
    for (let at = 0; at <= bytes.length; at += 1) {
      expect(read([bytes.subarray(0, at), bytes.subarray(at)])).toEqual({ head: ANSWER, body: "body" });
    }
    expect(read(Array.from(bytes, (byte) => Buffer.from([byte])))).toEqual({ head: ANSWER, body: "body" });
    expect(read([writeHead(ANSWER)])).toEqual({ head: ANSWER, body: "" });
    expect(read([writeHead(ANSWER).subarray(0, -1)])).toBeNull();
  });

  test("is read from pieces of any size", () => {
    const bytes = Buffer.concat([writeHead(ANSWER), Buffer.from("body")]);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1 }), (sizes) => {
        const pieces: Buffer[] = [];
        for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
          const size = sizes[turn % sizes.length] ?? 1;
          // As the connection's own memory, which may be written anew.
          pieces.push(Buffer.from(bytes.subarray(at, at + size)));
          at += size;
        }
        expect(read(pieces)).toEqual({ head: ANSWER, body: "body" });
      }),
    );
  });

  test("does not refer to the memory that its pieces arrived in", () => {
    const bytes = writeHead(ANSWER);
    const first = Buffer.from(bytes.subarray(0, 20));
    const reader = new HeadReader(answerHead);
    expect(reader.push(first)).toBeNull();
    first.fill(0);
    expect(reader.push(bytes.subarray(20))?.head).toEqual(ANSWER);
  });

  test("may be long, and is rejected as soon as its stated length is too large", () => {
    const long = { ...ANSWER, headers: { "x-long": "x".repeat(140_000) } };
    const bytes = writeHead(long);
    const pieces = Array.from({ length: 15 }, (_, at) => bytes.subarray(at * 10_000, (at + 1) * 10_000));
    expect(read(pieces)?.head).toEqual(long);
    expect(() => new HeadReader(answerHead).push(Buffer.from([0, 3, 0, 0]))).toThrow(HeadTooLarge);
    expect(() => writeHead({ ...ANSWER, headers: { x: "x".repeat(MAX_HEAD_BYTES) } })).toThrow(HeadTooLarge);
  });

  test("has at most 300 headers, each cookie counting as one", () => {
    const headers = (count: number): object =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`x-${at}`, ""]));
    expect(() => answerHead({ status: 200, headers: headers(300) })).not.toThrow();
    expect(() => answerHead({ status: 200, headers: headers(301) })).toThrow(HeadTooLarge);
    expect(() => answerHead({ status: 200, headers: { "set-cookie": Array(301).fill("a") } })).toThrow(HeadTooLarge);
  });

  test("is rejected unparsed if it is nested too deeply, but not for brackets in a string", () => {
    const parse = vi.spyOn(JSON, "parse");
    for (const open of ["[", '{"a":']) {
      expect(() => readAnswer(`{"status":200,"headers":{"x":${open.repeat(10_000)}`)).toThrow("nested");
    }
    expect(parse).not.toHaveBeenCalled();
    parse.mockRestore();
    const text = { ...ANSWER, headers: { x: `\\"${"[{".repeat(2000)}` } };
    expect(read([writeHead(text)])?.head).toEqual(text);
  });

  test("is copied a bounded number of times, however small its pieces are", () => {
    const bytes = writeHead({ ...ANSWER, headers: { "x-long": "x".repeat(20_000) } });
    const copy = vi.spyOn(Buffer.prototype, "copy");
    read(Array.from(bytes, (byte) => Buffer.of(byte)));
    const copied = copy.mock.results.reduce((sum, { value }) => sum + Number(value), 0);
    copy.mockRestore();
    expect(copied).toBeLessThan(4 * bytes.length);
  });

  test("can carry every byte that a header may contain", () => {
    const latin = Array.from({ length: 0x80 }, (_, at) => String.fromCharCode(0x80 + at)).join("");
    const ascii = `\t${Array.from({ length: 0x5f }, (_, at) => String.fromCharCode(0x20 + at)).join("")}`;
    const head = { status: 200, headers: { "x-all": ascii + latin, "x-none": "" } };
    expect(read([writeHead(head)])?.head).toEqual(head);
  });

  test.each([
    ["no content", ""],
    ["invalid JSON", "{"],
    ["bytes that are not text", "\u{0}\u{1}"],
    ["a number instead of an object", "1"],
    ["null instead of an object", "null"],
    ["an array instead of an object", '[{"status":200,"headers":{}}]'],
    ["a missing status", '{"headers":{}}'],
    ["a status as a string", '{"status":"200","headers":{}}'],
    ["a status outside the range of HTTP", '{"status":1000,"headers":{}}'],
    ["an informational status", '{"status":101,"headers":{}}'],
    ["a fractional status", '{"status":200.5,"headers":{}}'],
    ["missing headers", '{"status":200}'],
    ["headers that are null", '{"status":200,"headers":null}'],
    ["headers in an array", '{"status":200,"headers":["a"]}'],
    ["headers in an empty array", '{"status":200,"headers":[]}'],
    ["headers as a string", '{"status":200,"headers":"a: b"}'],
    ["inherited fields", '{"__proto__":{"status":200,"headers":{}}}'],
  ])("is rejected for %s", (_what, text) => {
    expect(() => readAnswer(text)).toThrow(HeadRefused);
  });

  test.each([
    ["a number", { a: 1 }],
    ["null", { a: null }],
    ["an object", { a: {} }],
    ["several values", { "content-type": ["a", "b"] }],
    ["a cookie that is not a string", { "set-cookie": ["a=1", 2] }],
    ["a line break in a cookie", { "set-cookie": ["a=1\r\nb: c"] }],
    ["a line break", { a: "b\r\nc: d" }],
    ["a line feed", { a: "b\nc" }],
    ["a zero byte", { a: "\u{0}" }],
    ["a delete character", { a: "\u{7f}" }],
    ["a character beyond one byte", { a: "\u{100}" }],
    ["half a surrogate pair", { a: "\u{d800}" }],
    ["an upper-case letter in its name", { "Transfer-Encoding": "chunked" }],
    ["a colon in its name", { ":status": "200" }],
    ["a space in its name", { "a b": "c" }],
    ["a line break in its name", { "a\r\nb": "c" }],
    ["no name", { "": "a" }],
    ["the name `__proto__`", JSON.parse('{"__proto__":"a"}') as object],
  ])("is rejected for a header with %s", (_what, headers) => {
    expect(() => readAnswer(JSON.stringify({ status: 200, headers }))).toThrow(HeadRefused);
    const request = { workload: "w", kind: "body", method: "GET", path: "/", headers };
    expect(() => readRequest(request)).toThrow(HeadRefused);
  });

  test("of a request contains the workload, kind, method, path and headers, and nothing else", () => {
    const head = { workload: "w", kind: "web-socket", method: "GET", path: "/a?b", headers: { a: "b" } };
    expect(readRequest({ ...head, status: 200 })).toEqual(head);
    for (const kind of ["body", "no-body"]) expect(readRequest({ ...head, kind })).toEqual({ ...head, kind });
    for (const name of ["workload", "kind", "method", "path", "headers"]) {
      expect(() => readRequest({ ...head, [name]: undefined }), name).toThrow(HeadRefused);
      expect(() => readRequest({ ...head, [name]: 1 }), name).toThrow(HeadRefused);
      expect(() => readRequest({ ...head, [name]: ["body"] }), name).toThrow(HeadRefused);
    }
    expect(() => readRequest({ ...head, kind: "other" })).toThrow(HeadRefused);
  });
});
