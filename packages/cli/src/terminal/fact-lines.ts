import { visible } from "./visible.ts";

/** A name and its value. */
export type Fact = readonly [string, string];

/** One aligned line per fact; facts without a value are omitted. */
export function factLines(facts: readonly Fact[]): string {
  const width = Math.max(...facts.map(([name]) => name.length));
  return facts
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `${visible(name.padEnd(width))}  ${visible(value)}\n`)
    .join("");
}
