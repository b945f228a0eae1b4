import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const BENCH = new URL("../bench/credentials.ts", import.meta.url).pathname;

test("the credentials benchmark measures each kind and sees a revoked credential rejected", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [BENCH, "--seconds", "0.01", "--credentials", "3"]);
  for (const kind of ["session token", "project key"]) {
    expect(stdout).toMatch(new RegExp(`^\\| ${kind} \\|( [\\d.]+ \\|){3} [\\d,]+ \\|$`, "m"));
    expect(stdout).toMatch(new RegExp(`^revoked ${kind}: refused [\\d.]+ ms after the answer`, "m"));
  }
});
