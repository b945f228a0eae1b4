/** What the link and a node's vault know an agent's secret by. No secret of a node has such a name. Pure. */

export interface AgentSecretName {
  readonly agentId: string;
  readonly name: string;
}

const KEY = /^(agt_[0-9a-z]{26})\.(.+)$/;

export function agentSecretKey({ agentId, name }: AgentSecretName): string {
  return `${agentId}.${name}`;
}

/** Null: it is not an agent's. */
export function readAgentSecretKey(key: string): AgentSecretName | null {
  const [, agentId, name] = KEY.exec(key) ?? [];
  return agentId === undefined || name === undefined ? null : { agentId, name };
}
