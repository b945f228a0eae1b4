import { text } from "node:stream/consumers";
import { describe, expect, it, test } from "vitest";
import { LogFormatter, logFormatOf } from "./log-formats.ts";

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

describe.each(CUTS)("logs that come in pieces of %i bytes", (size) => {
  it("are the plain lines", async () => {
    expect(await formatted("text", size)).toBe("one\n\nthrée “four”\ndata: [DONE]\n");
  });

  it("are JSON lines as the daemon wrote them", async () => {
    expect(await formatted("jsonl", size)).toBe(BYTES.toString());
  });

  it("are events that no line can forge the end of", async () => {
    const events = (await formatted("events", size)).split("\n\n");
    expect(events).toEqual([...LINES.map((line) => `data: ${line}`), "data: [DONE]", ""]);
  });
});

test.each([
  [undefined, "text"],
  ["*/*", "text"],
  ["text/event-stream", "events"],
  ["application/x-ndjson, */*;q=0.1", "jsonl"],
])("whoever accepts %j gets %s", (accept, format) => {
  expect(logFormatOf(accept)).toBe(format);
});
