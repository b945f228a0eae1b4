import { createParser } from "eventsource-parser";
import { CliError } from "../cli-error.ts";

/** A response that was cut off. */
export class BrokenAnswer extends CliError {
  override readonly name = "BrokenAnswer";
}

/**
 * Yields the parsed data of each event up to `[DONE]`. The caller may stop earlier.
 * @throws BrokenAnswer if the stream ends without `[DONE]`; CliError for data that is not JSON.
 */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<unknown> {
  const events: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => events.push(data) });
  for await (const text of readText(body)) {
    parser.feed(text);
    for (const data of events.splice(0)) {
      if (data === "[DONE]") return;
      yield parseJson(data);
    }
  }
  throw brokeOff();
}

async function* readText(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  try {
    yield* body.pipeThrough(new TextDecoderStream());
  } catch (cause) {
    // The caller's abort is not a broken response.
    if (cause instanceof Error && cause.name === "AbortError") throw cause;
    throw brokeOff(cause);
  }
}

function brokeOff(cause?: unknown): BrokenAnswer {
  return new BrokenAnswer("The response was cut off.", { cause });
}

function parseJson(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw new CliError("The response contains an event that is not JSON.", { cause });
  }
}
