import type { IncomingMessage, ServerResponse } from "node:http";
import { ChatWriter, chatQuestion } from "./scripted-chat.ts";
import { readBytes } from "./scripted-engine.ts";
import { type Answer, type AnswerWriter, answerTo, type Json, type Question, REFUSED } from "./scripted-model.ts";
import { ResponsesWriter, responsesQuestion } from "./scripted-responses.ts";

/** An inference server of both dialects over a scripted model, as strict as the real ones are. */

interface Spoken {
  readonly read: (body: Json) => Question;
  /** @param number of the answer. */
  readonly writer: (body: Json, number: number) => AnswerWriter;
  /** The member without which there is no question. */
  readonly asks: string;
  /** Whether that may be a text. */
  readonly isText: boolean;
}

const DIALECTS: Readonly<Record<string, Spoken>> = {
  "/v1/chat/completions": {
    read: chatQuestion,
    writer: (...of) => new ChatWriter(...of),
    asks: "messages",
    isText: false,
  },
  "/v1/responses": {
    read: responsesQuestion,
    writer: (...of) => new ResponsesWriter(...of),
    asks: "input",
    isText: true,
  },
};

/** A script for `ScriptedEngine`. Every body that came is in `asked`. */
export class ScriptedDialects {
  readonly asked: { readonly path: string; readonly body: Json }[] = [];
  /** Answers that their caller left. */
  left = 0;

  readonly script = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url ?? "";
    const body = JSON.parse((await readBytes(request)).toString()) as Json;
    this.asked.push({ path, body });
    const dialect = DIALECTS[path];
    if (dialect === undefined) return refuse(response, 404, { message: `There is no ${path}.`, param: null });
    const problem = problemOf(body, dialect);
    if (problem !== null) return refuse(response, 400, problem);
    const question = dialect.read(body);
    if (question.text.includes(REFUSED)) {
      return refuse(response, 400, { message: "The model refuses this.", param: dialect.asks });
    }
    const answer = answerTo(question);
    const writer = dialect.writer(body, this.asked.length);
    if (body["stream"] === true) {
      response.on("close", () => void (response.writableFinished || this.left++));
      stream(response, writer, answer);
    } else {
      send(response, 200, writer.whole(answer));
    }
  };
}

function stream(response: ServerResponse, writer: AnswerWriter, answer: Answer): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  const frames = writer.frames(answer);
  if (answer.ending === "end") {
    for (const frame of frames) response.write(frame);
    response.end();
    return;
  }
  // Up to the first words, and no further.
  const said = frames.findIndex((frame) => frame.includes("Hello"));
  for (const frame of frames.slice(0, said + 1)) response.write(frame);
  if (answer.ending === "break") setImmediate(() => response.destroy());
  if (answer.ending === "fail") response.end(writer.failure("The model has lost its thread.", said + 1));
}

interface Problem {
  readonly message: string;
  readonly param: string | null;
}

/** What this model cannot give; an answer without it would be a lie. */
const NOT_GIVEN = ["logprobs", "background", "previous_response_id", "conversation"];

function problemOf(body: Json, { asks, isText }: Spoken): Problem | null {
  const wrong = (param: string, problem: string): Problem => ({ message: `\`${param}\` ${problem}.`, param });
  const { model, temperature, n = 1 } = body;
  if (typeof model !== "string") return wrong("model", "is missing");
  const asked = body[asks];
  if (!(isText && typeof asked === "string") && !(Array.isArray(asked) && asked.length > 0)) {
    return wrong(asks, "is missing");
  }
  if (temperature !== undefined && !(typeof temperature === "number" && temperature >= 0 && temperature <= 2)) {
    return wrong("temperature", "is out of range");
  }
  if (n !== 1) return wrong("n", "must be 1");
  if (JSON.stringify(body["include"] ?? []).includes("logprobs")) return wrong("include", "names logprobs");
  const given = NOT_GIVEN.find((name) => Boolean(body[name]));
  return given === undefined ? null : wrong(given, "is nothing that this model can do");
}

function refuse(response: ServerResponse, status: number, problem: Problem): void {
  send(response, status, { error: { ...problem, type: "invalid_request_error", code: null } });
}

function send(response: ServerResponse, status: number, body: Json): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
