import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { blocksOf, missingLine, readPages } from "../../scripts/try-docs-steps/blocks.ts";

const root = new URL("../..", import.meta.url).pathname;

describe("the blocks of a page", () => {
  const page = [
    "# Page",
    "```sh",
    "fairlead models",
    "```",
    "",
    "```text",
    "local/tinychat-6m",
    "```",
    "Words between.",
    "```sh",
    "# not tried: it never ends",
    "fairlead server",
    "```",
    "Words between.",
    "```text",
    "belongs to nothing",
    "```",
    "```ts",
    "no shell",
    "```",
  ].join("\n");

  test("are its `sh` fences, each with its expected output (`text`) and the reason why it is not run", () => {
    expect(blocksOf("docs/page.md", page)).toEqual([
      { at: "docs/page.md:2", script: "fairlead models\n", notTried: null, expected: ["local/tinychat-6m"] },
      {
        at: "docs/page.md:10",
        script: "# not tried: it never ends\nfairlead server\n",
        notTried: "it never ends",
        expected: [],
      },
    ]);
  });

  test("are run if the reason not to run them is empty", () => {
    expect(blocksOf("p.md", "```sh\n# not tried: \nx\n```")[0]?.notTried).toBeNull();
  });
});

describe("the output of a block", () => {
  const printed = "ID   NAME\nnod_1  local  active\n\ndone in 3 s\n";

  test.each([[["nod_…local…active", "done in … s"]], [["done in 3 s"]], [["…"]], [[]]])(
    "has the lines %j",
    (expected) => {
      expect(missingLine(expected, printed)).toBeNull();
    },
  );

  test.each([
    [["done in … s", "nod_…"], "nod_…"],
    [["local"], "local"],
    [["nod_1…active…active"], "nod_1…active…active"],
    [["nod_1  local  active", "nod_1  local  active"], "nod_1  local  active"],
  ])("is checked for %j and lacks the line %s", (expected, missing) => {
    expect(missingLine(expected, printed)).toBe(missing);
  });
});

test("README.md and docs/ show shell commands only in `sh` fences, which are run", () => {
  const pages = readPages(root, ["--all"]);
  expect(pages.filter(({ notTried }) => notTried === null).length).toBeGreaterThan(20);
  const command = /^ {4}(?:\$ )?(?:fairlead|curl|npx|sudo|\.\/scripts\/quickstart)\b/;
  const unfenced = ["README.md", ...new Set(pages.map(({ at }) => at.split(":")[0] ?? ""))].flatMap((page) => {
    const text = readFileSync(root + page, "utf8").replaceAll(/^```[\s\S]*?^```/gm, "");
    return text.split("\n").filter((line) => command.test(line));
  });
  expect(unfenced).toEqual([]);
});
