import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { userVisibleNames } from "./support/user-visible-names.ts";

const root = new URL("..", import.meta.url).pathname;
const file = new URL("fixtures/user-visible-names.txt", import.meta.url);

/** Programs, dashboards and scripts depend on these. To change one on purpose, run this test with `FAIRLEAD_UPDATE_NAMES=1` and commit the list. */
test("routes, settings, errors, metrics, statuses, commands, exit codes and log fields are the committed ones", () => {
  const names = userVisibleNames(root);
  expect(names.length).toBeGreaterThan(1000);
  if (process.env["FAIRLEAD_UPDATE_NAMES"] === "1") writeFileSync(file, `${names.join("\n")}\n`);
  expect(names).toEqual(readFileSync(file, "utf8").trimEnd().split("\n"));
});
