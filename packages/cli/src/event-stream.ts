import { createParser } from "eventsource-parser";
import { CliError } from "./cli-error.ts";

/** An answer whose rest will not come. */
export class BrokenAnswer extends CliError {
  override readonly name = "BrokenAnswer";
}

/**
 * Yields what the events of a streamed answer hold, up to `[DONE]`. Whoever knows its end by other means may stop before.
 * @throws BrokenAnswer where the stream ends without `[DONE]`; CliError for what is not JSON.
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
    // The caller's own abort is no fault of the answer.
    if (cause instanceof Error && cause.name === "AbortError") throw cause;
    throw brokeOff(cause);
  }
}

function brokeOff(cause?: unknown): BrokenAnswer {
  return new BrokenAnswer("The answer broke off before its end.", { cause });
}

function parseJson(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw new CliError("The answer holds an event that is not JSON.", { cause });
  }
}
