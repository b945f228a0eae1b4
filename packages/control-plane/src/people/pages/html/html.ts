import { DIRECTION_MARKS } from "@fairlead/protocol/values/text";

/** Markup that is safe to send. Only `html` creates it, and escapes all other values. Pure. */
export class Html {
  readonly #text: string;

  private constructor(text: string) {
    this.#text = text;
  }

  /** Called by `html`. */
  static join(strings: TemplateStringsArray, values: readonly Content[]): Html {
    return new Html(strings.reduce((text, part, i) => text + render(values[i - 1]) + part));
  }

  toString(): string {
    return this.#text;
  }
}

/** null and false render nothing, so that `condition && html…` works. */
export type Content = Html | string | number | null | false | undefined | readonly Content[];

/** The template tag. Put attribute values in double quotes: `<a href="${path}">`. */
export function html(strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  return Html.join(strings, values);
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function render(content: Content): string {
  if (content === null || content === undefined || content === false) return "";
  if (content instanceof Html) return content.toString();
  if (typeof content === "object") return content.map(render).join("");
  // A name must not change the direction of the text next to it.
  const text = String(content).replaceAll(DIRECTION_MARKS, "");
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}
