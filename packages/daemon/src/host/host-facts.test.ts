import { expect, test } from "vitest";
import { readHostFacts, readStaticFacts } from "./host-facts.ts";

test("the machine's facts are those of this machine", async () => {
  const facts = await readStaticFacts();
  expect(facts.operatingSystem).toMatch(/\S+ \S+/);
  expect(facts.cpus).toBeGreaterThan(0);
  expect(facts.memoryMb).toBeGreaterThan(100);
  expect(facts.kernel).not.toBe("");
});

test("facts that change are read anew, and those that cannot be read are empty", async () => {
  const facts = await readStaticFacts();
  const version = () => Promise.reject(new Error("away"));
  expect(await readHostFacts(facts, { version })).toMatchObject({ ...facts, dockerVersion: "" });
  const engine = { version: "20.10", rootFolder: "/var/lib/no-such-engine" };
  const read = await readHostFacts(facts, { version: async () => engine });
  expect(read.dockerVersion).toBe("20.10");
  expect(read.diskFreeMb).toBeGreaterThan(0);
});
