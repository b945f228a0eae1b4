import { WORD_RULES, type WordRule } from "./word-rules.ts";

/** Finds wording that the project does not use in texts for people. Pure. */

export interface Piece {
  /** A file, or any other name to report a finding with. */
  readonly path: string;
  readonly text: string;
}

export interface Finding {
  readonly path: string;
  /** From 1. */
  readonly line: number;
  readonly found: string;
  readonly rule: WordRule;
}

export function findIdioms(pieces: readonly Piece[], rules: readonly WordRule[] = WORD_RULES): Finding[] {
  const compiled = rules.map((rule) => ({ rule, pattern: patternOf(rule) }));
  return pieces.flatMap(({ path, text }) =>
    compiled.flatMap(({ rule, pattern }) =>
      Array.from(text.matchAll(pattern), ({ 0: found, index }) => ({
        path,
        line: text.slice(0, index).split("\n").length,
        found: found.replaceAll(/\s+/g, " "),
        rule,
      })),
    ),
  );
}

/** Ignores case, and finds words that a line break separates. */
function patternOf({ pattern }: WordRule): RegExp {
  return new RegExp(pattern.source.replaceAll(" ", "\\s+"), "gi");
}

export function describeFinding({ path, line, found, rule }: Finding): string {
  return `${path}:${line}: "${found}": write ${rule.instead} (${rule.reason})`;
}

const CODE = "code";

/** @returns the prose of a Markdown page with its line numbers: no code, no targets of links, nothing that is generated from code. */
export function proseOf(page: string): string {
  const isGenerated = /^Generated /m.test(page);
  return page
    .replaceAll(/^```[\s\S]*?^```$/gm, blankLines)
    .replaceAll(/<!-- \w+: generated[\s\S]*?<!-- end/g, blankLines)
    .replaceAll(/^ {4}.*$/gm, "")
    .replaceAll(isGenerated ? /^\|.*$/gm : /^\|[ |:-]+$/gm, "")
    .replaceAll(/`[^`\n]+`/g, CODE)
    .replaceAll(/\]\([^)\s]+\)/g, "]");
}

/** Line numbers stay as they are. */
const blankLines = (text: string): string => text.replaceAll(/[^\n]/g, " ");

const LITERAL = /"((?:\\.|[^"\\\n])*)"|`((?:\\.|[^`\\])*)`/g;
const COMMENT = /\/\*[\s\S]*?\*\/|(?<![:"'`\w])\/\/[^\n]*/g;

/** @returns the sentences in a source file's string literals, line by line as in the file: messages, help and descriptions. */
export function messagesOf(source: string): string {
  const code = source.replaceAll(COMMENT, blankLines);
  let text = blankLines(code);
  for (const { 0: literal, 1: quoted, 2: template, index } of code.matchAll(LITERAL)) {
    const words = quoted ?? template ?? "";
    // Three words in a row: names and paths are no sentences.
    if (/\w+ \w+ \w+/.test(words)) text = `${text.slice(0, index)}${literal}${text.slice(index + literal.length)}`;
  }
  return text;
}
