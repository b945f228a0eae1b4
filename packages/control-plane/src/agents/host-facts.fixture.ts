import { NodeSealingKey } from "../auth/node-sealing.fixture.ts";
import type { HostFacts } from "../nodes/agent-hosts.ts";

/** A node in service that has said nothing of its workloads yet. */
export function hostFacts(facts: Partial<HostFacts> = {}): HostFacts {
  return {
    nodeId: "nod_1",
    projectId: "prj_1",
    name: "Rack 1",
    status: "active",
    statusSince: Date.UTC(2026, 0, 1),
    generation: 5,
    report: null,
    runsAgents: true,
    directSecrets: false,
    sealingKey: new NodeSealingKey().publicKey,
    ...facts,
  };
}
