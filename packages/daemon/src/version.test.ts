import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { DAEMON_VERSION } from "./version.ts";

test("the program's version is the package's", async () => {
  const text = await readFile(new URL("../package.json", import.meta.url), "utf8");
  expect(JSON.parse(text)).toMatchObject({ version: DAEMON_VERSION });
});
