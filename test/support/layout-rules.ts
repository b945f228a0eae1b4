import { posix } from "node:path";
import { type Edge, importsOf, type Source } from "./source-rules.ts";

/** Rules about where files lie and how folders depend on each other, each with the reason that is printed when it is broken. */

const SERVER = "packages/control-plane/src/";
const MAX_ENTRIES = 25;
const MAX_WINGS = 9;
const MAX_ROOT_FILES = 3;

/** @param paths every file below `packages/<package>/src`, tests included. @returns one line for every folder that is too full. */
export function crowdedFolders(paths: readonly string[]): string[] {
  const entries = new Map<string, Set<string>>();
  for (const path of paths) {
    const parts = path.split("/");
    for (let depth = 3; depth < parts.length; depth += 1) {
      const folder = parts.slice(0, depth).join("/");
      const known = entries.get(folder) ?? new Set();
      entries.set(folder, known.add(parts[depth] ?? ""));
    }
  }
  const crowded = [...entries].flatMap(([folder, names]) =>
    names.size > MAX_ENTRIES ? [`${folder}: ${names.size} entries; a reader finds their way among ${MAX_ENTRIES}`] : [],
  );
  return [...crowded, ...crowdedRoot([...(entries.get(SERVER.slice(0, -1)) ?? [])])];
}

function crowdedRoot(names: readonly string[]): string[] {
  const files = names.filter((name) => name.endsWith(".ts"));
  const folders = names.length - files.length;
  if (folders <= MAX_WINGS && files.length <= MAX_ROOT_FILES) return [];
  return [
    `${SERVER}: ${folders} folders and ${files.length} files; the map of the server is ${MAX_WINGS} wings and ${MAX_ROOT_FILES} files`,
  ];
}

/** Opens rooms and joins them, so it may see all of them. */
export const COMPOSITION_FILES = "packages/control-plane/src/(?:server|room|(?:\\S+/)?[^/\\s]+-room)";
const COMPOSITION = new RegExp(`^(?:${COMPOSITION_FILES})\\.ts$`);

const TESTS = /\.(test|contract|fixture)\.ts$|\/testing\//;

/** A room is a folder of a wing: `fleet/nodes`, with all that lies below it. */
export function roomOf(path: string): string | null {
  if (!path.startsWith(SERVER) || TESTS.test(path) || COMPOSITION.test(path)) return null;
  const parts = path.slice(SERVER.length).split("/");
  return parts.length < 3 ? (parts[0] ?? null) : parts.slice(0, 2).join("/");
}

/** @returns each cycle between rooms once, types included, with an import for each of its steps. */
export function roomCycles(sources: readonly Source[]): string[] {
  const graph = new Map<string, Map<string, Edge>>();
  for (const edge of sources.flatMap(importsOf)) {
    const from = roomOf(edge.from);
    const to = roomOf(edge.target);
    if (from === null || to === null || from === to) continue;
    const targets = graph.get(from) ?? new Map<string, Edge>();
    if (!targets.has(to)) targets.set(to, edge);
    graph.set(from, targets);
  }
  const cycles: string[] = [];
  const done = new Set<string>();
  const visit = (room: string, path: readonly string[]): void => {
    const start = path.indexOf(room);
    if (start >= 0) {
      const rooms = [...path.slice(start), room];
      const steps = rooms.slice(1).map((to, index) => graph.get(rooms[index] ?? "")?.get(to));
      cycles.push(steps.map((step) => `${step?.from} -> ${posix.basename(step?.target ?? "")}`).join(", "));
      return;
    }
    if (done.has(room)) return;
    for (const target of graph.get(room)?.keys() ?? []) visit(target, [...path, room]);
    done.add(room);
  };
  for (const room of graph.keys()) visit(room, []);
  return cycles.map((cycle) => `${cycle}: rooms that need each other are one room; types count`);
}

const EXPORT =
  /^export\s+(?:async\s+)?(?:abstract\s+)?(?:class|function\*?|const|let|interface|type|enum)\s+([\w$]+)/gm;
/** Both programs start in a `main`. */
const SHARED_NAMES = new Set(["main"]);

/** @returns a line for every name that two files of the packages export: a reader must not have to ask which one is meant. */
export function sharedNames(sources: readonly Source[]): string[] {
  const owners = new Map<string, string[]>();
  for (const { path, text } of sources.filter((source) => source.path.startsWith("packages/"))) {
    for (const [, name = ""] of text.matchAll(EXPORT)) owners.set(name, [...(owners.get(name) ?? []), path]);
  }
  return [...owners].flatMap(([name, paths]) => {
    const files = [...new Set(paths)];
    return files.length < 2 || SHARED_NAMES.has(name)
      ? []
      : [`${name}: exported by ${files.join(" and ")}; one name per idea`];
  });
}

/** Below this a file that serves one other file alone is a part of that file. */
const SMALL_LINES = 40;
/** Compositions only join, and each dialect keeps its facts in files of their own. */
const JOINS =
  /^packages\/(control-plane\/src\/(server|http\/platform|(\S+\/)?[\w-]+-room)|daemon\/src\/(daemon|node-parts|main)|cli\/src\/main|demo-agent\/src\/main|dialects\/src\/(dialect-specs|(chat|responses)\/\S+-spec))\.ts$/;
/** Small files with one importer that stay, and why. */
const STAY: Readonly<Record<string, string>> = {
  "packages/cli/src/platform/proxy-fetch.ts": "the only file of the command line that uses undici",
  "packages/control-plane/src/access/auth/sealing/node-sealing.ts": "jose is used in access/auth alone",
  "packages/control-plane/src/chat/store/turn-rules.ts": "pure, beside a file that is not",
  "packages/inference/src/calls/call-silence.ts": "the relay is as long as a file may be",
};

/** @param tests paths of the test files. @returns a line for every small file that only one other file imports and no test is about. */
export function smallParts(sources: readonly Source[], tests: ReadonlySet<string>): string[] {
  const importers = new Map<string, Set<string>>();
  for (const edge of sources.flatMap(importsOf)) {
    const target = packageFile(edge.target);
    importers.set(target, (importers.get(target) ?? new Set()).add(edge.from));
  }
  return sources.flatMap(({ path, text }) => {
    const [importer, ...others] = importers.get(path) ?? [];
    const isPart =
      importer !== undefined && others.length === 0 && !JOINS.test(importer) && isOfOnePackage(path, importer);
    const isSmall = text.split("\n").length <= SMALL_LINES && !tests.has(path.replace(/\.ts$/, ".test.ts"));
    if (!isPart || !isSmall || path in STAY) return [];
    return [`${path}: at most ${SMALL_LINES} lines, for ${importer} alone; a part of it, not a file`];
  });
}

const isOfOnePackage = (one: string, other: string): boolean => one.split("/")[1] === other.split("/")[1];

/** `@fairlead/wire/liveness` is `packages/wire/src/liveness.ts`. */
const packageFile = (target: string): string => target.replace(/^@fairlead\/([\w-]+)\/(.+)$/, "packages/$1/src/$2.ts");
