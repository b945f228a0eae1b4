import { expect, test } from "vitest";
import { readDiskFreeMb, readStaticFacts } from "./host-facts.ts";

test("the machine's facts are those of this machine", async () => {
  const facts = await readStaticFacts();
  expect(facts.operatingSystem).toMatch(/\S+ \S+/);
  expect(facts.cpus).toBeGreaterThan(0);
  expect(facts.memoryMb).toBeGreaterThan(100);
  expect(facts.kernel).not.toBe("");
});

test("free space is told for a folder that does not exist yet", async () => {
  expect(await readDiskFreeMb("/var/lib/no-such-engine")).toBeGreaterThan(0);
});
