import { AgentStore } from "../../packages/control-plane/src/agents/agent-store.ts";
import { placedAgent } from "../../packages/control-plane/src/agents/placed-agent.fixture.ts";
import { keyThumbprint } from "../../packages/control-plane/src/auth/node-assertion.ts";
import type { Installation } from "../../packages/control-plane/src/installation.ts";
import type { NodeKey } from "../../packages/control-plane/src/nodes/node.fixture.ts";

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
