import { responsesOrderProblems } from "@fairlead/dialects/testing/responses-order";
import { eventsOf } from "@fairlead/inference/relay/bridged.fixture";
import { describe, expect, test } from "vitest";
import { acknowledgement } from "./acknowledgement.ts";
import type { ResponseViewOptions } from "./response-view.ts";

const TELLING: ResponseViewOptions = {
  requestId: "req_01kc3b6q2v8r5x0m7n4t9w1yza",
  dialect: "responses",
  includeUsage: false,
};
const OPENED = { sessionId: "ses_1", model: null, now: 1_800_000_000_000 };

describe("the acknowledgement of /new", () => {
  test("consists of the nine events of a short response without usage, in order", () => {
    const events = eventsOf(acknowledgement(OPENED, TELLING));
    expect(responsesOrderProblems(events.slice(0, -1))).toEqual([]);
    expect(events.map((event) => (event as { type?: string }).type ?? event)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
      "[DONE]",
    ]);
    expect(events.at(-2)).toMatchObject({
      response: { model: "none", status: "completed", usage: { total_tokens: 0 }, metadata: { session_id: "ses_1" } },
    });
  });

  test.each([false, true])(
    "consists of a role, a text, a finish and [DONE] in the chat dialect (usage requested: %s)",
    (includeUsage) => {
      const events = eventsOf(
        acknowledgement({ ...OPENED, model: "n/m" }, { ...TELLING, dialect: "chat", includeUsage }),
      );
      expect(events.at(-1)).toBe("[DONE]");
      const chunks = events.slice(0, -1) as {
        model: string;
        choices: { delta: object; finish_reason: unknown }[];
        usage?: object;
      }[];
      const choices = chunks.flatMap((chunk) => chunk.choices);
      expect(choices[0]?.delta).toMatchObject({ role: "assistant" });
      expect(choices.at(-1)?.finish_reason).toBe("stop");
      expect(chunks.every(({ model }) => model === "n/m")).toBe(true);
      expect(chunks.at(-1)?.choices.length === 0).toBe(includeUsage);
    },
  );
});
