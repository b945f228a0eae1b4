/** Markup as a value that is safe to send: only `html` makes it, and `html` escapes whatever is no markup. Pure. */
export class Html {
  readonly #text: string;

  private constructor(text: string) {
    this.#text = text;
  }

  /** What `html` calls. */
  static join(strings: TemplateStringsArray, values: readonly Content[]): Html {
    return new Html(strings.reduce((text, part, i) => text + render(values[i - 1]) + part));
  }

  toString(): string {
    return this.#text;
  }
}

/** Nothing is rendered for null and false, so that `condition && html…` works. */
export type Content = Html | string | number | null | false | undefined | readonly Content[];

/** The template tag. Attribute values stand in double quotes: `<a href="${path}">`. */
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
  return String(content).replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}
