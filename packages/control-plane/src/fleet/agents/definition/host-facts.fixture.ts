import { NodeSealingKey } from "../../../access/auth/sealing/node-sealing.fixture.ts";
import type { AgentHostFacts } from "../../nodes/agents/agent-hosts.ts";

/** A node in service that has said nothing of its workloads yet. */
export function hostFacts(facts: Partial<AgentHostFacts> = {}): AgentHostFacts {
  return {
    nodeId: "nod_1",
    projectId: "prj_1",
    name: "Rack 1",
    status: "active",
    statusSince: Date.UTC(2026, 0, 1),
    generation: 5,
    report: null,
    directSecrets: false,
    sealingKey: new NodeSealingKey().publicKey,
    ...facts,
  };
}
