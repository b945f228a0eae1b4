import { z } from "zod";
import { CliError } from "../cli-error.ts";
import { BrokenAnswer, readEvents } from "../terminal/event-stream.ts";

/** Reads a streamed chat completion. */

const chunkSchema = z.object({
  choices: z.array(z.object({ delta: z.object({ content: z.string().nullish() }) })),
});
const failureSchema = z.object({ error: z.object({ message: z.string() }) });

/**
 * Yields the response text in pieces.
 * @throws CliError when the stream carries an error or ends before its `[DONE]`.
 */
export async function* readChatStream(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  try {
    for await (const event of readEvents(body)) {
      const piece = readPiece(event);
      if (piece) yield piece;
    }
  } catch (error) {
    if (!(error instanceof BrokenAnswer)) throw error;
    throw new CliError(`${error.message} Try again. \`fairlead node list\` shows the status of the nodes.`, {
      cause: error,
    });
  }
}

function readPiece(event: unknown): string {
  const failure = failureSchema.safeParse(event);
  if (failure.success) throw new CliError(`The response was cut off: ${failure.data.error.message}`);
  const chunk = chunkSchema.safeParse(event);
  if (!chunk.success) throw new CliError("The response contains an unknown event.");
  return chunk.data.choices.map(({ delta }) => delta.content ?? "").join("");
}
