import { afterEach, describe, expect, test, vi } from "vitest";
import { Http1Answer } from "./http1-answer.ts";
import { MalformedAnswer } from "./response-head.ts";

const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`;
const LINE = 16_384;
const bytes = (text: string): Buffer => Buffer.from(text, "latin1");

/** @returns the body. */
function read(pieces: readonly Buffer[]): string {
  let body = "";
  const answer = new Http1Answer({
    onHeaders: () => undefined,
    onData: (chunk) => {
      body += chunk.toString("latin1");
      return true;
    },
    onEnd: () => undefined,
  });
  answer.expect(false);
  for (const piece of pieces) answer.push(piece);
  return body;
}

function expectRefused(text: string): void {
  expect(() => read([bytes(text)])).toThrow(MalformedAnswer);
}

afterEach(() => void vi.restoreAllMocks());

describe("a response is rejected beyond", () => {
  const filled = (line: string, length: number): string => line + "b".repeat(length - line.length);
  const fields = (count: number): string => "a: b\r\n".repeat(count);
  const early = "HTTP/1.1 103 Early Hints\r\n\r\n";

  test.each([
    [
      "a status line of 16 KiB",
      `${filled("HTTP/1.1 200 ", LINE)}\r\n\r\n`,
      `${filled("HTTP/1.1 200 ", LINE + 1)}\r\n\r\n`,
    ],
    ["a header line of 16 KiB", `${OK}${filled("a: ", LINE)}\r\n\r\n`, `${OK}${filled("a: ", LINE + 1)}\r\n\r\n`],
    ["256 headers", `${OK}${fields(256)}\r\n`, `${OK}${fields(257)}\r\n`],
    ["16 informational responses", `${early.repeat(16)}${OK}\r\n`, `${early.repeat(17)}${OK}\r\n`],
    ["16 KiB of chunk extensions", `${CHUNKED}${filled("1;", LINE)}\r\n`, `${CHUNKED}${filled("1;", LINE + 1)}\r\n`],
    [
      "a trailer of 16 KiB",
      `${CHUNKED}0\r\n${filled("a: ", LINE)}\r\n`,
      `${CHUNKED}0\r\n${filled("a: ", LINE + 1)}\r\n`,
    ],
    ["256 trailers", `${CHUNKED}0\r\n${fields(256)}\r\n`, `${CHUNKED}0\r\n${fields(257)}\r\n`],
  ])("%s", (_name, most, more) => {
    expect(() => read([bytes(most)])).not.toThrow();
    expectRefused(more);
  });

  test("64 KiB of final and informational heads together", () => {
    const line = `${filled("a: ", 16_000)}\r\n`;
    expect(() => read([bytes(`${OK}${line.repeat(4)}\r\n`)])).not.toThrow();
    expectRefused(`${OK}${line.repeat(5)}\r\n`);
    expectRefused(`HTTP/1.1 103 x\r\n${line.repeat(3)}\r\n${OK}${line.repeat(3)}\r\n`);
  });

  test("64 KiB of trailers", () => {
    const line = `${filled("a: ", 16_000)}\r\n`;
    expect(() => read([bytes(`${CHUNKED}0\r\n${line.repeat(4)}\r\n`)])).not.toThrow();
    expectRefused(`${CHUNKED}0\r\n${line.repeat(5)}\r\n`);
  });
});

describe("work is linear in the size of a response", () => {
  /** Each byte may be searched, decoded and copied a few times, however the pieces are cut. */
  const TIMES = 12;
  const head = `${OK}${`a: ${"b".repeat(1000)}\r\n`.repeat(16)}\r\n`;
  const informational = `HTTP/1.1 103 x\r\n${`a: ${"b".repeat(1000)}\r\n`.repeat(3)}\r\n`;

  test.each([
    ["a large head", head],
    ["many informational heads", `${informational.repeat(5)}${OK}\r\n`],
    ["chunk extensions", `${CHUNKED}1;${"a".repeat(16_000)}\r\nx\r\n0\r\n\r\n`],
    ["trailers", `${CHUNKED}0\r\n${`a: ${"b".repeat(4000)}\r\n`.repeat(4)}\r\n`],
    ["chunks of one byte", `${CHUNKED}${"1\r\nx\r\n".repeat(3000)}0\r\n\r\n`],
  ])("with %s, received byte by byte or at once", (_name, text) => {
    const whole = bytes(text);
    const singles = Array.from(whole, (byte) => Buffer.of(byte));
    for (const pieces of [[whole], singles]) {
      const work = countWork();
      read(pieces);
      expect(work.bytes()).toBeLessThan(TIMES * whole.length);
    }
  });

  test("with a reader that pauses at each chunk while everything arrives", () => {
    const body = "x".repeat(2000);
    const pieces = Array.from(body, (byte) => bytes(`1\r\n${byte}\r\n`));
    let told = "";
    const answer = new Http1Answer({
      onHeaders: () => undefined,
      onData: (chunk) => {
        told += chunk.toString("latin1");
        return false;
      },
      onEnd: () => undefined,
    });
    answer.expect(false);
    const work = countWork();
    answer.push(bytes(CHUNKED));
    for (const piece of pieces) answer.push(piece);
    answer.push(bytes("0\r\n\r\n"));
    while (answer.isPaused) answer.resume();
    expect(told).toBe(body);
    expect(work.bytes()).toBeLessThan(TIMES * 6 * body.length);
  });

  test("with a header that is mostly spaces", () => {
    const spaces = " ".repeat(16_000);
    expectRefused(`${OK}a:${spaces}\x01\r\n\r\n`);
    expect(() => read([bytes(`${OK}a: x${spaces}y\r\n\r\n`)])).not.toThrow();
  });
});

/** Counts the bytes that buffers search, copy and decode. */
function countWork(): { bytes(): number } {
  vi.restoreAllMocks();
  let count = 0;
  const { indexOf, copy, toString } = Buffer.prototype;
  const concat = Buffer.concat.bind(Buffer);
  vi.spyOn(Buffer.prototype, "indexOf").mockImplementation(function (this: Buffer, ...args: unknown[]) {
    const found = Reflect.apply(indexOf, this, args) as number;
    count += (found === -1 ? this.length : found) - Number(args[1] ?? 0);
    return found;
  });
  vi.spyOn(Buffer.prototype, "copy").mockImplementation(function (this: Buffer, ...args: unknown[]) {
    const copied = Reflect.apply(copy, this, args) as number;
    count += copied;
    return copied;
  });
  vi.spyOn(Buffer.prototype, "toString").mockImplementation(function (this: Buffer, ...args: unknown[]) {
    const text = Reflect.apply(toString, this, args) as string;
    count += text.length;
    return text;
  });
  vi.spyOn(Buffer, "concat").mockImplementation((...args: Parameters<typeof Buffer.concat>) => {
    const joined = concat(...args);
    count += joined.length;
    return joined;
  });
  return { bytes: () => count };
}
