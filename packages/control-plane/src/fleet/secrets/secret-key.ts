/** What the link and a node's vault know secrets by (docs/interface.md §4.4). Pure. */

export type SecretOwnerKind = "node" | "agent";

export interface OwnedSecretName {
  readonly ownerId: string;
  readonly name: string;
}

const AGENT_KEY = /^(agt_[0-9a-z]{26})\.(.+)$/;

/** A node knows its own by their names; none of these looks like an agent's. */
export function secretKey(kind: SecretOwnerKind, { ownerId, name }: OwnedSecretName): string {
  return kind === "node" ? name : `${ownerId}.${name}`;
}

/** Null: it is not an agent's. */
export function readAgentSecretKey(key: string): OwnedSecretName | null {
  const [, ownerId, name] = AGENT_KEY.exec(key) ?? [];
  return ownerId === undefined || name === undefined ? null : { ownerId, name };
}
