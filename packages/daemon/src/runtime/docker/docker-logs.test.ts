import fc from "fast-check";
import { expect, test } from "vitest";
import type { LogLine } from "../container-runtime.ts";
import { linesOf, logQuery } from "./docker-logs.ts";

const AT = "2026-01-01T00:00:00.123456789Z";
const frame = (stream: 1 | 2, text: string): Buffer => {
  const body = Buffer.from(text);
  const header = Buffer.from([stream, 0, 0, 0, 0, 0, 0, 0]);
  header.writeUInt32BE(body.length, 4);
  return Buffer.concat([header, body]);
};
async function* pieces(bytes: Buffer, sizes: readonly number[]): AsyncIterable<Buffer> {
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}
const read = async (output: AsyncIterable<Buffer> | Buffer): Promise<LogLine[]> => {
  const lines: LogLine[] = [];
  for await (const line of linesOf(output)) lines.push(line);
  return lines;
};

test("lines are the same however the stream is split, even in the middle of a character", async () => {
  const bytes = Buffer.concat([
    frame(1, `${AT} \u{1f680} one\r\n${AT} tw`),
    frame(2, `${AT} \u001b[31mred <b>\n`),
    frame(1, "o\n"),
    frame(1, `${AT} no end`),
  ]);
  const whole = await read(bytes);
  expect(whole).toEqual([
    { at: AT, stream: "stdout", text: "\u{1f680} one" },
    { at: AT, stream: "stderr", text: "\u001b[31mred <b>" },
    { at: AT, stream: "stdout", text: "two" },
    { at: AT, stream: "stdout", text: "no end" },
  ]);
  const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 });
  await fc.assert(
    fc.asyncProperty(sizes, async (cuts) => {
      expect(await read(pieces(bytes, cuts))).toEqual(whole);
    }),
    { numRuns: 50 },
  );
});

test("a line that never ends arrives in parts, and uses little memory", async () => {
  const lines = await read(frame(1, `${AT} ${"x".repeat(200_000)}`));
  expect(lines.length).toBeGreaterThan(2);
  expect(lines.map(({ text }) => text).join("")).toHaveLength(200_000);
});

test("a cut frame ends the output without an error", async () => {
  expect(await read(frame(1, `${AT} one\n${AT} two\n`).subarray(0, 20))).toEqual([]);
});

test("times are sent to Docker as seconds", () => {
  expect(logQuery({ since: "2026-01-01T00:00:00.5Z", tail: 3, follow: true })).toEqual({
    since: "1767225600.500",
    tail: 3,
    follow: true,
  });
  expect(logQuery({ since: null, tail: null, follow: false })).toEqual({ follow: false });
});
