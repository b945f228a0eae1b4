import { z } from "zod";
import { CliError } from "../cli-error.ts";
import { BrokenAnswer, readEvents } from "../event-stream.ts";

/** Reads the events of one turn, in the responses dialect. */

export interface AnswerEnd {
  readonly status: "completed" | "incomplete";
  /** Why it is incomplete, where the server says. */
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
 * Hands on the answer's text piece by piece, what the model refuses with included.
 * @returns how it ended. @throws BrokenAnswer when it failed or just stopped; CliError for what is no event.
 */
export async function readAnswer(
  body: ReadableStream<Uint8Array>,
  onText: (piece: string) => void,
): Promise<AnswerEnd> {
  for await (const event of readEvents(body)) {
    const end = take(formed(eventSchema, event), onText);
    if (end !== null) return end;
  }
  throw new BrokenAnswer("The answer ended without saying how.");
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
      throw failed(formed(failedSchema, event).response.error?.message ?? "nobody says why");
    case "error":
      throw failed(formed(errorSchema, event).message);
    default:
      return null;
  }
}

function failed(message: string): BrokenAnswer {
  return new BrokenAnswer(`The answer broke off: ${message}`);
}

function formed<T>(schema: z.ZodType<T>, event: unknown): T {
  const parsed = schema.safeParse(event);
  if (!parsed.success) throw new CliError("The answer holds an event of an unknown form.");
  return parsed.data;
}
