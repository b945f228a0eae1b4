import type { BoundRow } from "./bound-row.ts";
import { BOUNDS } from "./bounds.ts";

const START = "<!-- bounds: generated from packages/control-plane/src/telemetry/bounds -->";
const END = "<!-- end of bounds -->";

/** @returns docs/security.md with its generated table of bounds. */
export function securityPage(page: string): string {
  const from = page.indexOf(START);
  const to = page.indexOf(END);
  if (from === -1 || to < from) throw new Error("docs/security.md has no place for the table of bounds");
  return `${page.slice(0, from + START.length)}\n\n${boundsTable()}\n\n${page.slice(to)}`;
}

function boundsTable(): string {
  const rows = Object.entries<BoundRow>(BOUNDS).map(([name, row]) => tableRow(name, row));
  const head = [
    "| bound | source | applies to | limit | effect | visible in | test |",
    "| --- | --- | --- | --- | --- | --- | --- |",
  ];
  return [...head, ...rows].join("\n");
}

function tableRow(name: string, { party, entry, limit, effect, counted, event, test }: BoundRow): string {
  const shown = [counted ?? "`fairlead_bounds_reached_total`", ...(event === undefined ? [] : [event])].join("; ");
  const [file = "", ...title] = test.split(": ");
  const link = `[${title.join(": ")}](../${file})`;
  return `| \`${name}\` | ${party} | ${entry} | ${limit} | ${effect} | ${shown} | ${link} |`;
}
