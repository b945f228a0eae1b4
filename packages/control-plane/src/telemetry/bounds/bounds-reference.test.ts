import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { BoundRow } from "./bound-row.ts";
import { BOUNDS } from "./bounds.ts";
import { securityPage } from "./bounds-reference.ts";

const root = new URL("../../../../../", import.meta.url);

test("docs/security.md lists every bound (regenerate it with `node --conditions=fairlead-source scripts/generate-docs.ts`)", () => {
  const page = readFileSync(new URL("docs/security.md", root), "utf8");
  expect(page).toBe(securityPage(page));
});

test("every bound names a test that exists", () => {
  const missing = Object.entries<BoundRow>(BOUNDS).filter(([, { test: named }]) => {
    const [file = "", ...title] = named.split(": ");
    const path = new URL(file, root);
    return !existsSync(path) || !readFileSync(path, "utf8").includes(title.join(": "));
  });
  expect(missing.map(([name]) => name)).toEqual([]);
});
