import { posix } from "node:path";

/** Checks sources against rules that are data. Works on text: the compiler has no API for it, and these forms suffice. */

export interface Source {
  /** From the root of the repository, with `/`. */
  readonly path: string;
  readonly text: string;
}

/** Forbids edges `<file> -> <target>`; a type-only import is `<file> -type-> <target>`. */
export interface ImportRule {
  readonly reason: string;
  readonly forbids: RegExp;
  readonly unless?: RegExp;
}

/** Forbids a pattern in the code (comments left out) of the files whose path matches. */
export interface TextRule {
  readonly reason: string;
  readonly files: RegExp;
  readonly unless?: RegExp;
  readonly forbids: RegExp;
}

/** The only files that may import an npm package. */
export interface PackageOwner {
  readonly package: string;
  readonly owners: RegExp;
  /** Others may name its types. */
  readonly typesAnywhere?: boolean;
}

export interface Rules {
  readonly imports: readonly ImportRule[];
  readonly texts: readonly TextRule[];
  readonly owners: readonly PackageOwner[];
}

/** @returns one line for every violation: where, and why it is forbidden. */
export function findViolations(sources: readonly Source[], rules: Rules): string[] {
  return sources.flatMap((source) => {
    const code = withoutComments(source.text);
    const edges = importsOf({ ...source, text: code });
    return [
      ...edges.flatMap((edge) => importViolations(edge, rules)),
      ...rules.texts.flatMap((rule) => textViolations({ ...source, text: code }, rule)),
      ...(isBarrel(code) ? [`${source.path}: only re-exports; the import path must name the owner`] : []),
    ];
  });
}

export interface Edge {
  readonly from: string;
  readonly target: string;
  readonly typeOnly: boolean;
}

const IMPORT = /^[ \t]*(?:import|export)\s+(type\s)?(?:[^;"'()]*?\sfrom\s+)?["']([^"']+)["']/gm;
const DYNAMIC_IMPORT = /\bimport\(\s*["']([^"']+)["']\s*\)/g;

export function importsOf({ path, text }: Source): Edge[] {
  const edge = (specifier: string, typeOnly: boolean): Edge => ({
    from: path,
    target: specifier.startsWith(".") ? posix.join(posix.dirname(path), specifier) : specifier,
    typeOnly,
  });
  return [
    ...Array.from(text.matchAll(IMPORT), ([, type, specifier = ""]) => edge(specifier, type !== undefined)),
    ...Array.from(text.matchAll(DYNAMIC_IMPORT), ([, specifier = ""]) => edge(specifier, false)),
  ];
}

function importViolations(edge: Edge, rules: Rules): string[] {
  const line = `${edge.from} ${edge.typeOnly ? "-type->" : "->"} ${edge.target}`;
  const broken = rules.imports.filter((rule) => rule.forbids.test(line) && !rule.unless?.test(line));
  const owner = rules.owners.find(({ package: name }) => edge.target === name || edge.target.startsWith(`${name}/`));
  const owned = owner && !owner.owners.test(edge.from) && !(edge.typeOnly && owner.typesAnywhere);
  return [
    ...broken.map((rule) => `${line}: ${rule.reason}`),
    ...(owned ? [`${line}: ${owner.package} belongs to ${owner.owners.source}`] : []),
  ];
}

function textViolations({ path, text }: Source, rule: TextRule): string[] {
  if (!rule.files.test(path) || rule.unless?.test(path)) return [];
  return text
    .split("\n")
    .flatMap((line, index) => (rule.forbids.test(line) ? [`${path}:${index + 1}: ${rule.reason}`] : []));
}

function isBarrel(code: string): boolean {
  const rest = code.replaceAll(/^[ \t]*export\s+(?:type\s+)?(?:\*[^;"']*|\{[^}]*\})\s*from\s*["'][^"']+["'];?/gm, "");
  return code.trim() !== "" && rest.trim() === "";
}

/** Line numbers stay as they are. */
function withoutComments(text: string): string {
  const blank = (comment: string): string => comment.replaceAll(/[^\n]/g, " ");
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, blank).replaceAll(/(^|[\s;,({])\/\/[^\n]*/g, blank);
}
