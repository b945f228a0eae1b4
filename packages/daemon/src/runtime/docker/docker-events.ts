import { createInterface } from "node:readline";
import { parseJson } from "@fairlead/protocol/values/parse-json";
import { z } from "zod";

const eventSchema = z.object({ time: z.number() });
const RETRY_MS = 1000;

export interface EventSource {
  /** Opens the stream. @param since Unix seconds of the last event seen, or null. */
  readonly open: (since: number | null, signal: AbortSignal) => Promise<NodeJS.ReadableStream>;
  readonly onChange: () => void;
  readonly signal: AbortSignal;
}

/**
 * Follows Docker's events forever. A stream that ends (dockerd restarted, disk full) is reopened from the last event
 * seen. Every reopening triggers a relist, which covers missed events (go-dockerclient#163).
 */
export async function followEvents({ open, onChange, signal }: EventSource): Promise<void> {
  let since: number | null = null;
  while (!signal.aborted) {
    try {
      const stream = await open(since, signal);
      onChange();
      since = await readEvents(stream, { since, onChange });
    } catch {
      // The engine is unreachable; listing will report that.
    }
    await pause(RETRY_MS, signal);
  }
}

async function readEvents(
  stream: NodeJS.ReadableStream,
  options: { since: number | null; onChange: () => void },
): Promise<number | null> {
  let { since } = options;
  const lines = createInterface({ input: stream });
  const ended = new Promise<void>((resolve) => {
    for (const source of [stream, lines]) source.on("error", () => resolve());
    lines.on("close", () => resolve());
  });
  lines.on("line", (line) => {
    since = timeOf(line) ?? since;
    options.onChange();
  });
  await ended;
  return since;
}

function timeOf(line: string): number | null {
  try {
    return eventSchema.safeParse(parseJson(line)).data?.time ?? null;
  } catch {
    return null;
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", done, { once: true });
    if (signal.aborted) done();
  });
}
