import { COMPOSITION_FILES } from "./layout-rules.ts";
import type { Source } from "./source-rules.ts";

/** A composition is data: rules that keep the wiring of the control plane small, each with the reason that is printed. */

const SERVER = "packages/control-plane/src/";
const ROOT = `${SERVER}server.ts`;
const MAX_ROOT_LINES = 120;
const MAX_LINES = 1700;

/** The composition, and what else only joins: factories of services and stores, retentions, lists of dependencies. */
const WIRING = new RegExp(`^(?:${COMPOSITION_FILES}|${SERVER}\\S+-(?:services|stores|deps|retentions?))\\.ts$`);

/** @returns one line for each limit that the composition exceeds. */
export function largeComposition(sources: readonly Source[]): string[] {
  const files = sources.filter(({ path }) => WIRING.test(path));
  const total = files.reduce((sum, { text }) => sum + linesOf(text), 0);
  const root = files.find(({ path }) => path === ROOT);
  const rootLines = root === undefined ? 0 : linesOf(root.text);
  return [
    ...(total > MAX_LINES ? [`${total} lines of wiring in ${files.length} files; ${MAX_LINES} are enough`] : []),
    ...(rootLines > MAX_ROOT_LINES ? [`${ROOT}: ${rootLines} lines; the root is a page of ${MAX_ROOT_LINES}`] : []),
  ];
}

const linesOf = (text: string): number => text.trimEnd().split("\n").length;

const BAG_NAME = "\\w*(?:Services|Deps|Stores|Options)\\b";
const BAGS = [
  // An interface made of two or more such interfaces.
  new RegExp(`\\binterface\\s+\\w+[^{]*\\bextends\\s[^{]*\\b${BAG_NAME}[^{]*,[^{]*\\b${BAG_NAME}[^{]*\\{`, "g"),
  // The same as an intersection.
  new RegExp(`\\btype\\s+\\w+\\s*=[^;{]*\\b${BAG_NAME}[^;{]*&[^;{]*\\b${BAG_NAME}`, "g"),
  // Part of a bag.
  new RegExp(`\\b(?:Pick|Omit)<\\s*${BAG_NAME.replace("|Deps|Stores|Options", "")}`, "g"),
];

/** @returns one line for each bag in the control plane. */
export function bags(sources: readonly Source[]): string[] {
  return sources
    .filter(({ path }) => path.startsWith(SERVER))
    .flatMap(({ path, text }) =>
      BAGS.flatMap((bag) =>
        Array.from(text.matchAll(bag), ({ index }) => ({ path, line: linesOf(text.slice(0, index + 1)) })),
      ),
    )
    .map(({ path, line }) => `${path}:${line}: a bag of other interfaces' fields; state the parameters that are used`);
}
