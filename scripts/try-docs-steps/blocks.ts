import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Parses fenced `sh` blocks of the documentation. Pure except for `readPages`. */

export interface Block {
  /** `README.md:12`. */
  readonly at: string;
  readonly script: string;
  /** Why it is skipped, or null. */
  readonly notTried: string | null;
  /** Lines that it must print, in this order; `…` matches any text. */
  readonly expected: readonly string[];
}

const NOT_TRIED = /^# not tried: (\S.*)$/;

export function blocksOf(page: string, text: string): Block[] {
  const fences = fencesOf(text);
  const lines = text.split("\n");
  return fences.flatMap((fence, index) => {
    if (fence.language !== "sh") return [];
    const next = fences[index + 1];
    const follows = next?.language === "text" && next.start === fence.end + 2 && lines[fence.end] === "";
    const [first = ""] = fence.lines;
    return {
      at: `${page}:${fence.start}`,
      script: `${fence.lines.join("\n")}\n`,
      notTried: NOT_TRIED.exec(first)?.[1] ?? null,
      expected: follows ? next.lines.filter((line) => line.trim() !== "") : [],
    };
  });
}

interface Fence {
  readonly language: string;
  /** Line numbers of the fences, from 1. */
  readonly start: number;
  readonly end: number;
  readonly lines: readonly string[];
}

function fencesOf(text: string): Fence[] {
  const lines = text.split("\n");
  const fences: Fence[] = [];
  for (let at = 0; at < lines.length; at++) {
    const language = /^```(\w*)$/.exec(lines[at] ?? "")?.[1];
    if (language === undefined) continue;
    const start = at;
    do at++;
    while (at < lines.length && lines[at] !== "```");
    fences.push({ language, start: start + 1, end: at + 1, lines: lines.slice(start + 1, at) });
  }
  return fences;
}

/** @returns the first expected line that is missing or out of order, or null. */
export function missingLine(expected: readonly string[], printed: string): string | null {
  let rest = printed.split("\n").map((line) => line.trim());
  for (const line of expected) {
    const at = rest.findIndex((candidate) => matches(line.trim(), candidate));
    if (at < 0) return line;
    rest = rest.slice(at + 1);
  }
  return null;
}

/** Linear time: each part is searched for after the previous one. */
function matches(pattern: string, line: string): boolean {
  const parts = pattern.split("…");
  const [first = "", ...others] = parts;
  if (others.length === 0) return pattern === line;
  const last = others.pop() ?? "";
  if (!line.startsWith(first) || !line.endsWith(last) || line.length < first.length + last.length) return false;
  let at = first.length;
  for (const part of others) {
    const found = line.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= line.length - last.length;
}

/** @param pages `--all`: README.md, then docs/ sorted by name. */
export function readPages(root: string, pages: readonly string[]): Block[] {
  const all = pages[0] === "--all" ? ["README.md", ...globSync("docs/*.md", { cwd: root }).toSorted()] : pages;
  return all.flatMap((page) => blocksOf(page, readFileSync(join(root, page), "utf8")));
}
