import { z } from "zod";
import { CliError } from "../cli-error.ts";
import { BrokenAnswer, readEvents } from "../terminal/event-stream.ts";

/** Reads the events of one turn, in the Responses dialect. */

export interface AnswerEnd {
  readonly status: "completed" | "incomplete";
  /** Why it is incomplete, if the server says so. */
  readonly reason: string | null;
}

const eventSchema = z.looseObject({ type: z.string() });
const deltaSchema = z.looseObject({ delta: z.string() });
const endSchema = z.looseObject({
  response: z.looseObject({ incomplete_details: z.object({ reason: z.string() }).nullish() }),
});
const failedSchema = z.looseObject({
  response: z.looseObject({ error: z.object({ message: z.string() }).nullable() }),
});
const errorSchema = z.looseObject({ message: z.string() });

/**
 * Passes on the response text in pieces, including the text of a refusal.
 * @returns how it ended. @throws BrokenAnswer if it failed or was cut off; CliError for an unknown event.
 */
export async function readAnswer(
  body: ReadableStream<Uint8Array>,
  onText: (piece: string) => void,
): Promise<AnswerEnd> {
  for await (const event of readEvents(body)) {
    const end = take(formed(eventSchema, event), onText);
    if (end !== null) return end;
  }
  throw new BrokenAnswer("The response ended without a final event.");
}

function take(event: z.infer<typeof eventSchema>, onText: (piece: string) => void): AnswerEnd | null {
  switch (event.type) {
    case "response.output_text.delta":
    case "response.refusal.delta":
      onText(formed(deltaSchema, event).delta);
      return null;
    case "response.completed":
      return { status: "completed", reason: null };
    case "response.incomplete":
      return { status: "incomplete", reason: formed(endSchema, event).response.incomplete_details?.reason ?? null };
    case "response.failed":
      throw failed(formed(failedSchema, event).response.error?.message ?? "no reason given");
    case "error":
      throw failed(formed(errorSchema, event).message);
    default:
      return null;
  }
}

function failed(message: string): BrokenAnswer {
  return new BrokenAnswer(`The response was cut off: ${message}`);
}

function formed<T>(schema: z.ZodType<T>, event: unknown): T {
  const parsed = schema.safeParse(event);
  if (!parsed.success) throw new CliError("The response contains an unknown event.");
  return parsed.data;
}
