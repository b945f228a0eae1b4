import { createParser } from "eventsource-parser";
import { z } from "zod";
import { CliError } from "./cli-error.ts";

/** Reads a streamed chat completion. */

const chunkSchema = z.object({
  choices: z.array(z.object({ delta: z.object({ content: z.string().nullish() }) })),
});
const failureSchema = z.object({ error: z.object({ message: z.string() }) });

/**
 * Yields the answer's text piece by piece.
 * @throws CliError when the stream carries an error or ends before its `[DONE]`.
 */
export async function* readChatStream(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const events: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => events.push(data) });
  for await (const text of readText(body)) {
    parser.feed(text);
    for (const data of events.splice(0)) {
      if (data === "[DONE]") return;
      const piece = readPiece(data);
      if (piece) yield piece;
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

function brokeOff(cause?: unknown): CliError {
  return new CliError("The answer broke off before its end. Try again; `fairlead node list` shows how the nodes are.", {
    cause,
  });
}

function readPiece(data: string): string {
  const event = parseJson(data);
  const failure = failureSchema.safeParse(event);
  if (failure.success) throw new CliError(`The answer broke off: ${failure.data.error.message}`);
  const chunk = chunkSchema.safeParse(event);
  if (!chunk.success) throw new CliError("The answer holds an event of an unknown form.");
  return chunk.data.choices.map(({ delta }) => delta.content ?? "").join("");
}

function parseJson(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw new CliError("The answer holds an event that is not JSON.", { cause });
  }
}
