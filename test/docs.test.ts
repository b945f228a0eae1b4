import { globSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  blocksAreFenced,
  citationsAreReadable,
  type DocRule,
  decisionCitationsResolve,
  linksResolve,
  missingFromIndex,
  pageCitationsResolve,
  pathsExist,
  type Repository,
  sourceFilesExist,
  wrongDecisionRows,
} from "./support/doc-rules.ts";
import type { Source } from "./support/source-rules.ts";

const root = new URL("..", import.meta.url).pathname;
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const sourceAt = (path: string): Source => ({ path, text: read(path) });

const files = globSync(["*", "{packages,scripts,test,docs,install,systemd}/**/*"], {
  cwd: root,
  exclude: ["**/node_modules", "**/dist"],
}).filter((path) => statSync(join(root, path)).isFile());
const repository: Repository = { files: new Set(files), read };

const pages = files.filter((path) => path.endsWith(".md")).map(sourceAt);
/** Their samples name pages that do not exist. */
const WITH_SAMPLES: readonly string[] = ["test/docs.test.ts", "test/try-docs/blocks.test.ts"];
const commented = files
  .filter((path) => /\.(tsx?|mjs|py|c|sh|service)$|^(scripts|install)\/[\w/-]+$/.test(path))
  .filter((path) => !WITH_SAMPLES.includes(path))
  .map(sourceAt);

describe("the documentation", () => {
  test.each<[string, DocRule, readonly Source[]]>([
    ["has only links that resolve, anchors included", linksResolve, pages],
    ["has no indented blocks", blocksAreFenced, pages],
    ["names only files and folders that exist", pathsExist, pages],
    ["names only source files that exist", sourceFilesExist, pages],
    ["cites only pages and sections that exist, and so do comments", pageCitationsResolve, [...pages, ...commented]],
    ["cites only decisions that exist, and so do comments", decisionCitationsResolve, [...pages, ...commented]],
    ["cites only what its readers can find, and so do comments", citationsAreReadable, [...pages, ...commented]],
  ])("%s", (_title, rule, sources) => {
    expect(sources.length).toBeGreaterThan(30);
    expect(sources.flatMap((source) => rule(source, repository))).toEqual([]);
  });

  test("lists every page of docs/ in docs/README.md", () => {
    const indexed = pages.map(({ path }) => path).filter((path) => /^docs\/[\w-]+\.md$/.test(path));
    expect(indexed.length).toBeGreaterThan(20);
    expect(missingFromIndex(sourceAt("docs/README.md"), indexed)).toEqual([]);
  });

  test("lists every decision in docs/decisions/README.md by its title", () => {
    const decisions = pages.filter(({ path }) => /^docs\/decisions\/\d/.test(path));
    expect(decisions.length).toBeGreaterThan(20);
    expect(wrongDecisionRows(sourceAt("docs/decisions/README.md"), decisions)).toEqual([]);
  });
});

describe("the rules", () => {
  const sample: Repository = {
    files: new Set([
      "README.md",
      "docs/keys.md",
      "docs/interface.md",
      "docs/decisions/0019-money.md",
      "test/a.test.ts",
    ]),
    read: () => "# Keys\n\n## 4. Endpoints\n\n### 4.1 Chat: `POST /v1`\n\n```sh\n# not a heading\n```\n",
  };
  const inPage = (rule: DocRule, text: string): string[] => rule({ path: "docs/page.md", text }, sample);

  test.each<[string, DocRule, [text: string, reason: string]]>([
    ["a link to a missing page", linksResolve, ["[x](gone.md)", "docs/page.md:1: gone.md: no such file"]],
    [
      "a link to a missing heading",
      linksResolve,
      ["\n[x](keys.md#gone)", "docs/page.md:2: keys.md#gone: docs/keys.md has no such heading"],
    ],
    [
      "a link to a comment in a block",
      linksResolve,
      ["[x](keys.md#not-a-heading)", "docs/page.md:1: keys.md#not-a-heading: docs/keys.md has no such heading"],
    ],
    [
      "an indented block",
      blocksAreFenced,
      ["Run:\n\n    npm test", "docs/page.md:3: fence this block (```sh, ```text, …) instead of indenting it"],
    ],
    [
      "a missing file",
      pathsExist,
      ["in `test/gone.test.ts`", "docs/page.md:1: test/gone.test.ts: no such file or folder"],
    ],
    ["a missing folder", pathsExist, ["in `packages/gone/`", "docs/page.md:1: packages/gone/: no such file or folder"]],
    [
      "a pattern without a file",
      pathsExist,
      ["in `test/*.spec.ts`", "docs/page.md:1: test/*.spec.ts: no such file or folder"],
    ],
    [
      "the end of a missing path",
      sourceFilesExist,
      ["`b/a.test.ts`", "docs/page.md:1: b/a.test.ts: no such file in the repository"],
    ],
    ["a missing page", pageCitationsResolve, ["// see docs/gone.md", "docs/page.md:1: docs/gone.md: no such page"]],
    [
      "a missing section",
      pageCitationsResolve,
      ["(docs/interface.md §4.1, §5)", "docs/page.md:1: docs/interface.md §5: no such section"],
    ],
    [
      "a missing section on the next line",
      pageCitationsResolve,
      ["/**\n * interface.md\n * §4.2 */", "docs/page.md:2: docs/interface.md §4.2: no such section"],
    ],
    [
      "a missing decision",
      decisionCitationsResolve,
      ["(decisions/0020)", "docs/page.md:1: decision 0020: no such decision in docs/decisions"],
    ],
    [
      "a missing decision in words",
      decisionCitationsResolve,
      ["decision 0020", "docs/page.md:1: decision 0020: no such decision in docs/decisions"],
    ],
    [
      "a design document that readers do not have",
      citationsAreReadable,
      ["(design §4)", "docs/page.md:1: design §: cite a page that readers have: decisions/NNNN, or a page of docs/"],
    ],
    [
      "a section without its page",
      citationsAreReadable,
      [
        "Interface §4.4",
        "docs/page.md:1: Interface §: name the page, so that the section can be found: docs/interface.md §n",
      ],
    ],
    [
      "a bare decision number",
      citationsAreReadable,
      [
        "as before (0019)",
        "docs/page.md:1: (0019): name the page, so that the decision can be found: decisions/NNNN, or a link",
      ],
    ],
  ])("refuse %s", (_what, rule, [text, reason]) => {
    expect(inPage(rule, text)).toEqual([reason]);
  });

  test.each<[string, DocRule, string]>([
    [
      "links to pages, headings and other sites",
      linksResolve,
      "[x](keys.md) [x](../README.md) [x](keys.md#41-chat-post-v1) [x](https://a.example/#x)",
    ],
    ["links inside blocks", linksResolve, "```text\n[x](gone.md)\n```"],
    ["fenced blocks and lists", blocksAreFenced, "- a list\n  that goes on\n```yaml\nkeys:\n    - a\n```"],
    ["files, folders and patterns", pathsExist, "`test/a.test.ts` `docs/decisions` `docs/` `docs/*` `docs/*/*.md`"],
    ["the end of a path", sourceFilesExist, "`a.test.ts` `test/a.test.ts`"],
    [
      "pages and sections",
      pageCitationsResolve,
      "docs/keys.md, `docs/interface.md §4.1`, (interface.md §4,\n * §4.1), docs/decisions/0019-money.md",
    ],
    ["pages elsewhere", pageCitationsResolve, "https://a.example/docs/gone.md, packages/x/README.md"],
    ["decisions", decisionCitationsResolve, "(decisions/0019), decision 0019, [0019](decisions/0019-money.md)"],
    ["sections of standards, and numbers", citationsAreReadable, "(RFC 6749 §5.2), mode (0600), [0019](0019-money.md)"],
  ])("allow %s", (_what, rule, text) => {
    expect(inPage(rule, text)).toEqual([]);
  });

  test("find a page that is missing from the index", () => {
    const index = { path: "docs/README.md", text: "[keys](keys.md#limits) [decisions](decisions/README.md)" };
    expect(missingFromIndex(index, ["docs/README.md", "docs/keys.md", "docs/decisions/README.md"])).toEqual([]);
    expect(missingFromIndex(index, ["docs/chat.md"])).toEqual(["docs/chat.md: not linked from docs/README.md"]);
  });

  test("find a decision that is missing from the index, extra in it or listed under another title", () => {
    const money = { path: "docs/decisions/0019-money.md", text: "# 0019 Money: holds\n" };
    const index = (text: string): Source => ({ path: "docs/decisions/README.md", text });
    const row = "| [0019](0019-money.md) | Money: holds |";
    expect(wrongDecisionRows(index(row), [money])).toEqual([]);
    expect(wrongDecisionRows(index(""), [money])).toEqual([`docs/decisions/README.md: row 1 must be: ${row}`]);
    expect(wrongDecisionRows(index("| [0019](0019-money.md) | Money |"), [money])).toHaveLength(1);
    expect(wrongDecisionRows(index(row), [])).toEqual(["docs/decisions/README.md: row 1 must be: absent"]);
  });
});
