import { once } from "node:events";
import { PassThrough, pipeline } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, it, test, vi } from "vitest";
import { LogFormatter, logFormatOf, MalformedLogLine } from "./log-formats.ts";

const LINES = ["one", "", "thrée “four”", "data: [DONE]"].map((said) =>
  JSON.stringify({ at: "2026-01-01T00:00:00Z", stream: "stdout", text: said }),
);
const BYTES = Buffer.from(`${LINES.join("\n")}\n`);

/** However the bytes are cut. */
const CUTS = [1, 7, BYTES.length];

async function formatted(format: ConstructorParameters<typeof LogFormatter>[0], size: number): Promise<string> {
  const formatter = new LogFormatter(format);
  for (let start = 0; start < BYTES.length; start += size) formatter.write(BYTES.subarray(start, start + size));
  formatter.end();
  return text(formatter);
}

describe.each(CUTS)("logs that arrive in chunks of %i bytes", (size) => {
  it("are returned as plain lines", async () => {
    expect(await formatted("text", size)).toBe("one\n\nthrée “four”\ndata: [DONE]\n");
  });

  it("are returned as JSON lines exactly as the daemon wrote them", async () => {
    expect(await formatted("jsonl", size)).toBe(BYTES.toString());
  });

  it("are returned as events that no line can terminate", async () => {
    const events = (await formatted("events", size)).split("\n\n");
    expect(events).toEqual([...LINES.map((line) => `data: ${line}`), "data: [DONE]", ""]);
  });
});

test.each([
  [undefined, "text"],
  ["*/*", "text"],
  ["text/event-stream", "events"],
  ["application/x-ndjson, */*;q=0.1", "jsonl"],
])("a request that accepts %j gets %s", (accept, format) => {
  expect(logFormatOf(accept)).toBe(format);
});

describe.each(["text", "jsonl", "events"] as const)("a hostile daemon's log as %s", (format) => {
  test.each([
    ["that is not JSON", "{\n"],
    ["of the wrong shape", "null\n"],
    ["without text", '{"at":"","stream":"stdout"}\n'],
    ["that is deeply nested", `${"[".repeat(100_000)}\n`],
    ["that does not end", `"${"x".repeat(600_000)}`],
    ["that is too long", `{"at":"","stream":"stdout","text":"${"x".repeat(600_000)}"}\n`],
  ])("fails with an error, without ending the process, on a line %s", async (_what, line) => {
    const source = new PassThrough();
    const told = pipeline(source, new LogFormatter(format), () => undefined);
    const ended = once(told, "error");
    expect(() => source.write(line)).not.toThrow();
    expect(await ended).toEqual([expect.any(MalformedLogLine)]);
  });

  test("is copied a bounded number of times, however small its chunks are", () => {
    const copy = vi.spyOn(Buffer.prototype, "copy");
    const formatter = new LogFormatter(format);
    const line = Buffer.from(`{"at":"","stream":"stdout","text":"${"x".repeat(5000)}"}`);
    for (const byte of line) formatter.write(Buffer.of(byte));
    const copied = copy.mock.results.reduce((sum, { value }) => sum + Number(value), 0);
    copy.mockRestore();
    expect(copied).toBeLessThan(4 * line.length);
    formatter.destroy();
  });
});

test("whitespace between the members of a daemon's line cannot forge an event", async () => {
  const formatter = new LogFormatter("events");
  formatter.end('{"at":"",\r\r"stream":"stdout","text":"a"}\n');
  expect(await text(formatter)).toBe('data: {"at":"","stream":"stdout","text":"a"}\n\ndata: [DONE]\n\n');
});
