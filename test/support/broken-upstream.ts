import type { IncomingMessage, ServerResponse } from "node:http";
import { ChatWriter, chatQuestion } from "./scripted-chat.ts";
import { type EngineScript, readBytes } from "./scripted-engine.ts";
import { answerTo, type Json } from "./scripted-model.ts";
import { ResponsesWriter, responsesQuestion } from "./scripted-responses.ts";

/** Where a stream ends before its time. */
export interface Breach {
  /** Whole events that are sent before. */
  readonly events: number;
  /** Half of the next one is sent too. */
  readonly inside: boolean;
  /** As a connection that is cut, or as if all were well. */
  readonly how: "cut" | "clean";
}

/** Every place where the stream of this answer can break: before each event and in the middle of each. */
export function breachesOf(dialect: "chat" | "responses"): Breach[] {
  // The end mark is no part of the answer: a stream that lacks it alone is whole.
  const events = framesFor(dialect, ASKING).length - (dialect === "chat" ? 1 : 2);
  return Array.from({ length: events + 1 }, (_, each) => each).flatMap((each) =>
    [false, true].flatMap((inside) =>
      (["cut", "clean"] as const).map((how) => ({ events: each, inside: inside && each < events, how })),
    ),
  );
}

/** Answers as the scripted model does, and breaks off there. */
export function breakingAt(breach: Breach): EngineScript {
  return async (request: IncomingMessage, response: ServerResponse) => {
    const body = JSON.parse((await readBytes(request)).toString()) as Json;
    const frames = framesFor(request.url === "/v1/responses" ? "responses" : "chat", body);
    const { events, inside, how } = breach;
    const next = frames[events] ?? "";
    const sent = frames.slice(0, events).join("") + (inside ? next.slice(0, next.length / 2) : "");
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    const end = (): unknown => (how === "cut" ? response.destroy() : response.end());
    if (sent === "") end();
    else response.write(sent, () => setImmediate(end));
  };
}

function framesFor(dialect: "chat" | "responses", body: Json): readonly string[] {
  if (dialect === "responses") return new ResponsesWriter(body, 1).frames(answerTo(responsesQuestion(body)));
  return new ChatWriter(body, 1).frames(answerTo(chatQuestion(body)));
}

/** Whatever is asked, there are as many events. */
const ASKING: Json = {
  model: "model",
  messages: [{ role: "user", content: "Hi" }],
  input: [{ role: "user", content: "Hi" }],
  stream_options: { include_usage: true },
};
