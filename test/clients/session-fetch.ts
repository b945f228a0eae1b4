import { expect } from "vitest";
import { assertChatOrder } from "../../packages/dialects/src/testing/chat-order.ts";
import { hasOpenAiDocument, OpenAiDocument } from "../../packages/dialects/src/testing/openai-document.ts";
import { assertResponsesOrder } from "../../packages/dialects/src/testing/responses-order.ts";
import { readEvents, type StreamEvent } from "../support/stream-events.ts";

const schemas = hasOpenAiDocument ? new OpenAiDocument() : null;

/** What a client of the chat routes needs besides its SDK: the session goes with every call. Keeps what was streamed, to be judged. */
export class SessionFetch {
  session: string | null = null;
  /** Every session that was named, in order. */
  readonly sessions: string[] = [];
  readonly statuses: number[] = [];
  readonly #streams: Promise<string>[] = [];

  readonly fetch: typeof fetch = async (input, init) => {
    const headers = new Headers(init?.headers);
    if (this.session !== null) headers.set("service-session-id", this.session);
    const response = await fetch(input, { ...init, headers });
    this.session = response.headers.get("service-session-id") ?? this.session;
    this.sessions.push(this.session ?? "");
    this.statuses.push(response.status);
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
      // What its reader leaves is no whole stream.
      this.#streams.push(
        response
          .clone()
          .text()
          .catch(() => ""),
      );
    }
    return response;
  };

  /** Of every stream so far: each event is as OpenAI's document has it, their order is right, and the end mark is there. */
  async expectWellFormed(): Promise<void> {
    expect(this.#streams.length).toBeGreaterThan(0);
    for (const stream of await Promise.all(this.#streams)) {
      const { events, done } = readEvents(stream);
      expect(done).toBe(true);
      const isChat = events.some((event) => "choices" in event);
      (isChat ? assertChatOrder : assertResponsesOrder)(events);
      expect(events.map((event) => problemsOf(event, isChat)).filter(Boolean)).toEqual([]);
    }
  }
}

function problemsOf(event: StreamEvent, isChat: boolean): string {
  if (schemas === null) return "";
  return isChat ? schemas.problems("CreateChatCompletionStreamResponse", event) : schemas.eventProblems(event);
}
