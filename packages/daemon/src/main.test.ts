import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { main } from "./main.ts";

let folder = "";
let out = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "fairlead-main-"));
  out = "";
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, "write").mockImplementation((chunk) => {
      out += String(chunk);
      return true;
    });
  }
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

test.each([["run"], ["status"]])("%s --help shows examples and ends with 0", async (command) => {
  expect(await main([command, "--help"])).toBe(0);
  expect(out).toContain("Example");
});

test("a wrong call ends with 2 and says what is wrong", async () => {
  expect(await main(["run", "--no-such-flag"])).toBe(2);
  expect(out).toContain("--no-such-flag");
  expect(await main(["run", "--state-dir", folder])).toBe(2);
  expect(out).toContain("not enrolled");
  expect(await main(["run", "--state-dir", folder, "--log-level", "loud"])).toBe(2);
  expect(out).toContain("--log-level: must be one of");
});

test("status tells of a folder that no daemon has used", async () => {
  expect(await main(["status", "--state-dir", join(folder, "none"), "--json"])).toBe(0);
  expect(JSON.parse(out)).toEqual({
    running: false,
    nodeId: null,
    platformUrl: null,
    enrolled: false,
    generation: null,
    workloads: [],
  });
});
