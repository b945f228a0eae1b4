import type { HostFacts } from "@fairlead/protocol/daemon-link";

/** Of a machine that is none. */
export const HOST_FACTS: HostFacts = {
  operatingSystem: "none",
  kernel: "",
  architecture: "x64",
  hostName: "simulated",
  cpus: 1,
  memoryMb: 1,
  diskFreeMb: 1,
  dockerVersion: "",
};
