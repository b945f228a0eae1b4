import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { describeFinding, findIdioms, messagesOf, type Piece, proseOf } from "./support/plain-english.ts";
import { WORD_RULES } from "./support/word-rules.ts";

const root = new URL("..", import.meta.url).pathname;

/** Decisions are records of their time. */
const PAGES = globSync(["README.md", "docs/*.md"], { cwd: root }).toSorted();

test("README.md and docs/ are written in plain English", () => {
  expect(PAGES).toEqual(expect.arrayContaining(["README.md", "docs/keys.md", "docs/operations.md"]));
  const pieces: Piece[] = PAGES.map((path) => ({ path, text: proseOf(readFileSync(join(root, path), "utf8")) }));
  expect(findIdioms(pieces).map(describeFinding)).toEqual([]);
});

test("messages, help and descriptions are written in plain English", () => {
  const paths = globSync("packages/*/src/**/*.ts", { cwd: root }).filter(
    (path) => !/\.(test|contract|fixture)\.ts$|\/testing\//.test(path),
  );
  expect(paths.length).toBeGreaterThan(500);
  const pieces: Piece[] = paths.map((path) => ({ path, text: messagesOf(readFileSync(join(root, path), "utf8")) }));
  expect(findIdioms(pieces).map(describeFinding)).toEqual([]);
});

describe("the messages of a source file", () => {
  const source =
    'const a = "This token ran out anew."; // told anew\nconst anew = "anew";\nlog.info(`it stood in ${x} anew`);';

  test("are its quoted sentences on their own lines, without comments, names and single words", () => {
    const found = findIdioms([{ path: "a.ts", text: messagesOf(source) }]).filter(({ found: text }) => text === "anew");
    expect(found.map(({ line }) => line)).toEqual([1, 3]);
  });
});

describe.each(WORD_RULES)("the word rule $pattern.source", (rule) => {
  const matches = (text: string): number => findIdioms([{ path: "sample", text }], [rule]).length;

  test(`reports "${rule.bad}"`, () => {
    expect(matches(rule.bad)).toBeGreaterThan(0);
    expect(matches(rule.bad.replaceAll(" ", "\n  "))).toBe(matches(rule.bad));
  });

  test(`has an example that passes every rule: "${rule.good}"`, () => {
    expect(findIdioms([{ path: "sample", text: rule.good }]).map(describeFinding)).toEqual([]);
  });
});

test("a finding reports its location, the replacement and the reason", () => {
  const [finding] = findIdioms([{ path: "page.md", text: "# Page\n\nThe daemon enrolls\nanew." }]);
  expect(finding && describeFinding(finding)).toBe(
    'page.md:4: "anew": write again, or a verb with re- (literary or translated; use the plain word)',
  );
});

describe("the prose of a page", () => {
  const page = [
    "# Page",
    "```sh",
    "echo anew",
    "```",
    "    echo anew",
    "Run `enroll anew` or [enroll](anew.md#anew).",
    "<!-- bounds: generated from code -->",
    "| anew |",
    "<!-- end of bounds -->",
    "| field | meaning |",
    "| --- | --- |",
    "| `again` | anew |",
  ].join("\n");

  test("omits code, link targets and generated parts, and keeps tables and line numbers", () => {
    expect(findIdioms([{ path: "p", text: proseOf(page) }]).map(({ line, found }) => ({ line, found }))).toEqual([
      { line: 12, found: "anew" },
    ]);
  });

  test("of a generated page omits tables, because their text comes from code", () => {
    expect(findIdioms([{ path: "p", text: proseOf(`Generated from code.\n${page}`) }])).toEqual([]);
  });
});
