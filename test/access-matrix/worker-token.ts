import { keyThumbprint } from "../../packages/control-plane/src/access/auth/tokens/node-assertion.ts";
import { placedAgent } from "../../packages/control-plane/src/fleet/agents/life/placed-agent.fixture.ts";
import { AgentStore } from "../../packages/control-plane/src/fleet/agents/records/agent-store.ts";
import type { NodeKey } from "../../packages/control-plane/src/fleet/nodes/node.fixture.ts";
import type { Installation } from "../../packages/control-plane/src/installation/installation-room.ts";

interface Host {
  readonly id: string;
  readonly key: NodeKey;
}

/** As an agent that runs on the node has it. */
export async function workerToken(
  { db, tokens }: Installation,
  projectId: string,
  { id: nodeId, key }: Host,
): Promise<string> {
  const agent = placedAgent({ id: "agt_matrix", projectId, nodeId });
  await new AgentStore(db).insert(agent);
  const worker = { agentId: agent.id, nodeId, projectId, run: agent.run, ttlSeconds: 600 };
  return tokens.issueWorker({ ...worker, keyThumbprint: keyThumbprint(key.signingKey) });
}
