import { expect, test } from "vitest";
import { runScript } from "../support/run-script.ts";
import { whyNotTried } from "./why-not-tried.ts";

test("every command in README.md works as documented on a bare Debian 12", async ({ skip }) => {
  const reason = whyNotTried();
  if (reason !== null) skip(reason);
  const { code, out, errors } = await runScript("try-docs", []);
  expect(out + errors).toMatch(/^\d+ blocks passed, 0 failed, \d+ not tried$/m);
  expect(code).toBe(0);
});
