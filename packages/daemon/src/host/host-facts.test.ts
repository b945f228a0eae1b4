import { hostFactsSchema } from "@fairlead/protocol/daemon-link";
import { expect, test } from "vitest";
import { readHostFacts, readStaticFacts } from "./host-facts.ts";

test("the reported facts are those of this machine", async () => {
  const facts = await readStaticFacts();
  expect(facts.operatingSystem).toMatch(/\S+ \S+/);
  expect(facts.cpus).toBeGreaterThan(0);
  expect(facts.memoryMb).toBeGreaterThan(100);
  expect(facts.kernel).not.toBe("");
});

test("facts that change are read again, and facts that cannot be read are empty", async () => {
  const facts = await readStaticFacts();
  const version = () => Promise.reject(new Error("away"));
  expect(await readHostFacts(facts, { version })).toMatchObject({ ...facts, dockerVersion: "" });
  const engine = { id: "a", version: "20.10", rootFolder: "/var/lib/no-such-engine", usesProxy: false };
  const read = await readHostFacts(facts, { version: async () => engine });
  expect(read.dockerVersion).toBe("20.10");
  expect(read.diskFreeMb).toBeGreaterThan(0);
});

test("facts of any length are reported in a form that the control plane accepts", async () => {
  const facts = await readStaticFacts();
  const host = await readHostFacts(facts, {
    version: async () => ({ id: "a", version: "x".repeat(500), rootFolder: "/", usesProxy: false }),
  });
  expect(hostFactsSchema.parse(host)).toEqual(host);
  expect(host.dockerVersion).toHaveLength(64);
});
