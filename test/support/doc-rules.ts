import { posix } from "node:path";
import type { Source } from "./source-rules.ts";

/** Checks the links, paths and citations of pages and comments. Pure: the repository is an argument. */

export interface Repository {
  /** Every file, from the root, with `/`. */
  readonly files: ReadonlySet<string>;
  readonly read: (path: string) => string;
}

/** Returns the reasons why a text is refused, as `path:line: what: reason`. */
export type DocRule = (source: Source, repository: Repository) => string[];

/** Each relative link of a page, and its anchor, resolves. */
export const linksResolve: DocRule = (source, repository) =>
  Array.from(withoutFences(source.text).matchAll(/\]\(([^)\s]+)\)/g)).flatMap(({ index, 1: link = "" }) => {
    if (/^[a-z]+:/.test(link)) return [];
    const [path = "", fragment] = link.split("#");
    const target = path === "" ? source.path : posix.join(posix.dirname(source.path), path);
    if (!isThere(target, repository)) return [violation(source, index, `${link}: no such file`)];
    if (fragment === undefined || anchorsOf(target, repository).includes(fragment)) return [];
    return [violation(source, index, `${link}: ${target} has no such heading`)];
  });

/** Each block is fenced, so that it has a language and its commands are tried. */
export const blocksAreFenced: DocRule = (source) =>
  Array.from(withoutFences(source.text).matchAll(/^ {4} *[^ \n]/gm), ({ index }) =>
    violation(source, index, "fence this block (```sh, ```text, …) instead of indenting it"),
  );

/** Each path in backticks that begins with a folder of the repository exists; `*` stands for any part of a name. */
export const pathsExist: DocRule = (source, repository) =>
  Array.from(source.text.matchAll(/`((?:packages|scripts|test|docs|systemd)\/[\w.*/-]+)(?=[ `])/g)).flatMap(
    ({ index, 1: path = "" }) =>
      isThere(path.replace(/\/$/, ""), repository) ? [] : [violation(source, index, `${path}: no such file or folder`)],
  );

/** Each file in backticks with the extension of a source file is a file of the repository, by the end of its path. */
export const sourceFilesExist: DocRule = (source, repository) => {
  const files = Array.from(repository.files, (file) => `/${file}`);
  return Array.from(source.text.matchAll(/`([\w./-]+\.ts)`/g)).flatMap(({ index, 1: file = "" }) =>
    files.some((known) => known.endsWith(`/${file}`))
      ? []
      : [violation(source, index, `${file}: no such file in the repository`)],
  );
};

/** Each page named as `docs/….md`, and each section of it (`docs/interface.md §4.1, §5`), exists. */
export const pageCitationsResolve: DocRule = (source, repository) =>
  Array.from(
    joinLines(source.text).matchAll(/(?<![\w./-])(?:docs\/)?((?:decisions\/)?[\w-]+\.md)`?((?:,?\s+§\d+(?:\.\d+)*)*)/g),
  ).flatMap(({ index, 0: citation, 1: name = "", 2: sections = "" }) => {
    if (!citation.startsWith("docs/") && sections === "") return [];
    const page = `docs/${name}`;
    if (!repository.files.has(page)) return [violation(source, index, `${page}: no such page`)];
    const headings = headingsOf(repository.read(page));
    return (sections.match(/\d+(?:\.\d+)*/g) ?? [])
      .filter((section) => !headings.some((heading) => /^[\d.]*\d/.exec(heading)?.[0] === section))
      .map((section) => violation(source, index, `${page} §${section}: no such section`));
  });

/** Each decision that is cited (`decisions/0019`, `decision 0019`) exists. */
export const decisionCitationsResolve: DocRule = (source, repository) =>
  Array.from(joinLines(source.text).matchAll(/\bdecisions?[ /](\d{4})(?!\d)/g)).flatMap(({ index, 1: number = "" }) =>
    isThere(`docs/decisions/${number}-*.md`, repository)
      ? []
      : [violation(source, index, `decision ${number}: no such decision in docs/decisions`)],
  );

const UNREADABLE: readonly (readonly [citation: RegExp, reason: string])[] = [
  [/\bdesign\s+§/gi, "cite a page that readers have: decisions/NNNN, or a page of docs/"],
  [/\binterface(?:'s)?`?\s+`?§/gi, "name the page, so that the section can be found: docs/interface.md §n"],
  [/\(00\d\d[,)]/g, "name the page, so that the decision can be found: decisions/NNNN, or a link"],
];

/** No citation of what a reader of the repository does not have, or cannot find. */
export const citationsAreReadable: DocRule = (source) =>
  UNREADABLE.flatMap(([citation, reason]) =>
    Array.from(joinLines(source.text).matchAll(citation), ({ index, 0: found }) =>
      violation(source, index, `${found}: ${reason}`),
    ),
  );

/** @returns the pages that the index does not link to. */
export function missingFromIndex(index: Source, pages: readonly string[]): string[] {
  const linked = new Set(
    Array.from(index.text.matchAll(/\]\(([^)\s#]+)/g), ([, link = ""]) => posix.join(posix.dirname(index.path), link)),
  );
  return pages
    .filter((page) => page !== index.path && !linked.has(page))
    .map((page) => `${page}: not linked from ${index.path}`);
}

/** @returns the rows of the index of decisions that are not the number and title of their page, in order. */
export function wrongDecisionRows(index: Source, decisions: readonly Source[]): string[] {
  const rows = index.text.match(/^\| \[.+$/gm) ?? [];
  const expected = decisions
    .map(({ path, text }) => {
      const [, number = "", title = ""] = /^# (\d{4}) (.+)$/m.exec(text) ?? [];
      return `| [${number}](${posix.basename(path)}) | ${title} |`;
    })
    .toSorted();
  return Array.from({ length: Math.max(rows.length, expected.length) }, (_, at) => at)
    .filter((at) => rows[at] !== expected[at])
    .map((at) => `${index.path}: row ${at + 1} must be: ${expected[at] ?? "absent"}`);
}

function violation({ path, text }: Source, index: number, reason: string): string {
  return `${path}:${text.slice(0, index).split("\n").length}: ${reason}`;
}

function isThere(path: string, { files }: Repository): boolean {
  if (files.has(path)) return true;
  if (!path.includes("*")) return Array.from(files).some((file) => file.startsWith(`${path}/`));
  return Array.from(files).some((file) => posix.matchesGlob(file, path) || posix.matchesGlob(file, `${path}/**`));
}

function anchorsOf(page: string, repository: Repository): string[] {
  return page.endsWith(".md") ? headingsOf(repository.read(page)).map(anchor) : [];
}

function headingsOf(text: string): string[] {
  return Array.from(withoutFences(text).matchAll(/^#+\s+(.+)$/gm), ([, heading = ""]) => heading);
}

/** GitHub's anchor of a heading. */
function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");
}

function withoutFences(text: string): string {
  return text.replaceAll(/^ *```[\s\S]*?^ *```/gm, (fence) => fence.replaceAll(/[^\n]/g, " "));
}

/** A citation may go over the end of a line of a comment; indexes stay as they are. */
function joinLines(text: string): string {
  return text.replaceAll(/\n[ \t]*(?:\*|\/\/|#)?/g, (end) => " ".repeat(end.length));
}
