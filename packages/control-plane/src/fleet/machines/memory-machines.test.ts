import { systemClock } from "@fairlead/protocol/values/clock";
import { expect } from "vitest";
import { machineProviderContract } from "./machine-provider.contract.ts";
import { GOOD_TOKEN, MemoryMachines } from "./memory-machines.fixture.ts";

/** What other tests are built on keeps to what the real ones keep to. */
machineProviderContract("memory", async () => {
  const provider = new MemoryMachines(() => systemClock.now());
  return {
    provider,
    neighbour: new MemoryMachines(() => systemClock.now(), provider),
    token: GOOD_TOKEN,
    type: "m1",
    location: "north",
    missingId: "4711",
    close: async () => expect(provider.living).toEqual([]),
  };
});
