import { parseJson } from "@fairlead/protocol/values/parse-json";
import { isObject } from "../json/parse.ts";

const OPENING = /^\s*\{\s*"input"\s*:\s*"/;
/** What the opening above may still become. */
const MAYBE_OPENING = /^\s*(\{\s*("(i(n(p(u(t("\s*(:\s*)?)?)?)?)?)?)?)?)?$/;
const LONGEST_OPENING = 256;
const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/**
 * Reads `{"input": "…"}`, the arguments of a free-form tool that is offered as a function, while they arrive, and gives out the
 * text inside. Arguments of any other form are the model's mistake, and become the input as they are.
 */
export class CustomToolInput {
  #arguments = "";
  #state: "opening" | "text" | "closed" | "other" = "opening";
  /** An escape or half a surrogate pair, until the rest of it comes. */
  #held = "";

  /** @returns the piece of the input that became known. */
  push(delta: string): string {
    if (this.#state === "text") return this.#decode(delta);
    if (this.#state === "closed") return "";
    this.#arguments += delta;
    if (this.#state === "other") return "";
    const opening = OPENING.exec(this.#arguments)?.[0];
    if (opening !== undefined) {
      this.#state = "text";
      return this.#decode(this.#arguments.slice(opening.length));
    }
    if (!MAYBE_OPENING.test(this.#arguments) || this.#arguments.length > LONGEST_OPENING) this.#state = "other";
    return "";
  }

  /** @returns what is left to give once the arguments are whole, or cut. */
  end(): string {
    return this.#state === "opening" || this.#state === "other" ? inputOf(this.#arguments) : "";
  }

  #decode(delta: string): string {
    const source = this.#held + delta;
    this.#held = "";
    let text = "";
    let at = 0;
    while (at < source.length) {
      const character = source.charAt(at);
      if (character === '"') {
        this.#state = "closed";
        return text.toWellFormed();
      }
      const read = character === "\\" ? readEscape(source, at) : { text: character, length: 1 };
      if (read === null) break;
      text += read.text;
      at += read.length;
    }
    // Half a pair on its own is no text that every JSON parser takes: it waits for its other half.
    const last = text.charCodeAt(text.length - 1);
    const whole = last >= 0xd800 && last < 0xdc00 ? text.length - 1 : text.length;
    this.#held = text.slice(whole) + source.slice(at);
    return text.slice(0, whole).toWellFormed();
  }
}

/** @returns null where the escape is not whole yet. */
function readEscape(source: string, at: number): { text: string; length: number } | null {
  const kind = source.charAt(at + 1);
  if (kind === "") return null;
  if (kind !== "u") return { text: ESCAPES[kind] ?? kind, length: 2 };
  const digits = source.slice(at + 2, at + 6);
  if (digits.length < 4) return null;
  if (!/^[0-9a-fA-F]{4}$/.test(digits)) return { text: "u", length: 2 };
  return { text: String.fromCharCode(Number.parseInt(digits, 16)), length: 6 };
}

function inputOf(args: string): string {
  try {
    const parsed: unknown = parseJson(args);
    if (isObject(parsed) && typeof parsed["input"] === "string") return parsed["input"];
  } catch {
    // Not JSON: the model wrote the input itself.
  }
  return args;
}
