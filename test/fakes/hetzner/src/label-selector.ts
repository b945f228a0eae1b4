import { invalidInput } from "./api-error.ts";

export type Labels = Readonly<Record<string, string>>;

const KEY = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const VALUE = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;

/** @throws ApiError 422 on a key or a value that no label can have. */
export function checkLabels(labels: Labels): void {
  for (const [key, value] of Object.entries(labels)) {
    if (!KEY.test(key) || key.startsWith("hetzner.cloud/")) throw invalidInput("labels", `key '${key}' is invalid`);
    if (!VALUE.test(value)) throw invalidInput("labels", `value '${value}' is invalid`);
  }
}

/** `k`, `!k`, `k=v`, `k==v`, `k!=v`, `k in (a,b)`, `k notin (a,b)`, joined by commas. @throws ApiError 422 */
export function matcherOf(selector: string): (labels: Labels) => boolean {
  // A comma within parentheses belongs to its set.
  const terms = selector
    .split(/,(?![^(]*\))/)
    .map((term) => term.trim())
    .map(termOf);
  return (labels) => terms.every((matches) => matches(labels));
}

function termOf(term: string): (labels: Labels) => boolean {
  const set = /^(\S+) +(in|notin) +\(([^)]*)\)$/.exec(term);
  if (set !== null) {
    const values = (set[3] ?? "").split(",").map((value) => value.trim());
    const key = checkedKey(set[1]);
    const inside = (labels: Labels): boolean => labels[key] !== undefined && values.includes(labels[key]);
    return set[2] === "in" ? inside : (labels) => !inside(labels);
  }
  const [, name, operator, value] = /^([^=!]+?) *(==|!=|=) *([^=!]*)$/.exec(term) ?? [];
  if (operator !== undefined) {
    const key = checkedKey(name);
    return (labels) => (labels[key] === value) === (operator !== "!=");
  }
  if (term.startsWith("!")) {
    const key = checkedKey(term.slice(1));
    return (labels) => labels[key] === undefined;
  }
  const key = checkedKey(term);
  return (labels) => labels[key] !== undefined;
}

function checkedKey(key = ""): string {
  if (!KEY.test(key)) throw invalidInput("label_selector", `'${key}' is no label`);
  return key;
}
