/** What a model of no wits answers: the same to the same question, in whatever dialect it is asked. */

export interface Question {
  /** The last user's words; "" where something else was said last. */
  readonly text: string;
  /** What the user said before that, in order. */
  readonly earlier: readonly string[];
  /** What the last tool brought; null where no tool spoke last. */
  readonly toolResult: string | null;
  readonly tools: readonly Tool[];
  /** The name of the tool that has to be called. */
  readonly forced: string | null;
  readonly choice: "auto" | "none" | "required";
  readonly parallel: boolean;
  /** Of the text that is wanted: a JSON schema, any JSON object, or no wish. */
  readonly format: JsonSchema | "json" | null;
  readonly limit: number | null;
  /** How hard to think: "none", null, or more. */
  readonly effort: string | null;
}

export interface Tool {
  readonly name: string;
  readonly parameters: JsonSchema;
}

export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
}

export interface Answer {
  readonly thinking: string;
  readonly text: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
  /** Whether the limit cut it off. */
  readonly cut: boolean;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** How its stream goes on after what it says; whole answers are always fine. */
  readonly ending: "end" | "break" | "fail" | "go on for ever";
}

export type Json = Readonly<Record<string, unknown>>;

/** Tells an answer in one dialect. */
export interface AnswerWriter {
  /** In one piece. */
  whole(answer: Answer): Json;
  /** Every event of a stream that ends well, as frames. */
  frames(answer: Answer): readonly string[];
  /** The frames that tell of a failure. @param told how many frames were sent before. */
  failure(message: string, told: number): string;
}

/** The text of a content, be it one or made of parts. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map((part: { text?: string }) => part.text ?? "").join("") : "";
}

/** The texts of a user, in order, but the one that is asked now. */
export function earlierTexts(messages: readonly { readonly role?: string; readonly content?: unknown }[]): string[] {
  return messages.slice(0, -1).flatMap(({ role, content }) => (role === "user" ? [textOf(content)] : []));
}

/** Small pieces, as tokens are; a character is never cut. */
export const pieces = (text: string): string[] => text.match(/.{1,6}/gsu) ?? [];

export const HELLO = "Hello from the scripted model ✓";
/** Words in a question that make its stream end badly, or not at all. */
export const BREAKS = "please break off";
export const FAILS = "please fail midway";
export const NEVER_ENDS = "please never end";
/** A question with these words is refused with 400. */
export const REFUSED = "please refuse";
export const THINKS = "please think";

/** Asked this, it tells what the user said before, joined by `RECALLED_BY`. */
export const RECALL = "What did I say?";
export const RECALLED_BY = " | ";

/** Longer than the caps under which a model would be asked to think. */
const THOUGHTS = "Let me see what I make of this before I say anything. ".repeat(4).trimEnd();

export function answerTo(question: Question): Answer {
  const { text, calls } = say(question);
  const { limit, effort } = question;
  const thinks = question.text.includes(THINKS) || (effort !== null && effort !== "none");
  const thoughts = thinks ? words(THOUGHTS) : [];
  const all = [...thoughts, ...words(text)];
  const cut = calls.length === 0 && limit !== null && limit < all.length;
  const said = cut ? all.slice(0, limit) : all;
  return {
    thinking: said.slice(0, thoughts.length).join(""),
    text: said.slice(thoughts.length).join(""),
    calls,
    cut,
    inputTokens: 7,
    outputTokens: calls.length * 5 + said.length,
    ending: endOf(question.text),
  };
}

const words = (text: string): string[] => (text === "" ? [] : text.split(/(?<= )/));

function endOf(text: string): Answer["ending"] {
  if (text.includes(BREAKS)) return "break";
  if (text.includes(FAILS)) return "fail";
  return text.includes(NEVER_ENDS) ? "go on for ever" : "end";
}

function say(question: Question): Pick<Answer, "text" | "calls"> {
  const { toolResult, format, text } = question;
  if (toolResult !== null) return { text: `The tool says: ${toolResult}`, calls: [] };
  if (text === RECALL) return { text: question.earlier.join(RECALLED_BY), calls: [] };
  const called = calledTools(question);
  if (called.length > 0) {
    const calls = called.map(({ name, parameters }, index) => ({
      name,
      arguments: JSON.stringify(sample(parameters, index)),
    }));
    return { text: "", calls };
  }
  if (format !== null)
    return { text: JSON.stringify(format === "json" ? { answer: "Paris" } : sample(format, 0)), calls: [] };
  const quoted = /(?:say|repeat|reply with)[^"]*"([^"]+)"/i.exec(text)?.[1];
  return { text: quoted ?? HELLO, calls: [] };
}

/** The weather is asked of a tool, two things of two; and whatever is demanded is called. */
function calledTools({ tools, choice, forced, parallel, text }: Question): readonly Tool[] {
  const tool = tools.find(({ name }) => name === forced) ?? tools[0];
  if (tool === undefined || choice === "none" || text === "") return [];
  if (forced === null && choice !== "required" && !/weather/i.test(text)) return [];
  if (!parallel || !/\band\b/i.test(text)) return [tool];
  return tools.length > 1 ? tools.slice(0, 2) : [tool, tool];
}

const CITIES = ["Paris", "Tokyo"];

/** Something that the schema allows. */
function sample(schema: JsonSchema, index: number): unknown {
  if (schema.enum !== undefined) return schema.enum[0];
  const type = typeof schema.type === "string" ? schema.type : schema.type?.[0];
  switch (type) {
    case "object":
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, each]) => [name, sample(each, index)]),
      );
    case "array":
      return [sample(schema.items ?? {}, index)];
    case "integer":
    case "number":
      return 7;
    case "boolean":
      return true;
    case "null":
      return null;
    case "string":
    case undefined:
    default:
      return CITIES[index] ?? "Paris";
  }
}
