import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const root = new URL("..", import.meta.url).pathname;
const pages = globSync(["README.md", "docs/**/*.md", "packages/*/README.md"], { cwd: root });

/** GitHub's anchor of a heading. */
function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");
}

function anchorsOf(page: string): string[] {
  const text = readFileSync(page, "utf8").replaceAll(/^```[\s\S]*?^```/gm, "");
  return Array.from(text.matchAll(/^#+\s+(.+)$/gm), ([, heading = ""]) => anchor(heading));
}

function linksOf(page: string): string[] {
  const text = readFileSync(join(root, page), "utf8").replaceAll(/^```[\s\S]*?^```/gm, "");
  return Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, target = ""]) => target);
}

function isDead(page: string, link: string): boolean {
  const [path = "", fragment] = link.split("#");
  const target = path ? join(root, dirname(page), path) : join(root, page);
  if (!existsSync(target)) return true;
  return fragment !== undefined && target.endsWith(".md") && !anchorsOf(target).includes(fragment);
}

test("every relative link of the documentation leads somewhere", () => {
  expect(pages).toContain("README.md");
  const dead = pages.flatMap((page) =>
    linksOf(page)
      .filter((link) => !/^[a-z]+:/.test(link) && isDead(page, link))
      .map((link) => `${page}: ${link}`),
  );
  expect(dead).toEqual([]);
});
