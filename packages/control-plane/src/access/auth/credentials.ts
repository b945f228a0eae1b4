import type { Clock } from "@fairlead/protocol/values/clock";
import type { Memberships } from "./access.ts";
import { createAuthenticate, createNodeCredentials, type NodeIdentities, type SignInSessions } from "./authenticate.ts";
import { VerifiedTokens } from "./credential-cache.ts";
import { FactCache } from "./fact-cache.ts";
import type { KeyRing } from "./sealing/key-ring.ts";
import { ConnectTokens } from "./tokens/connect-token.ts";
import type { TokenService } from "./tokens/tokens.ts";
import { type AgentIdentities, WorkerTokens } from "./tokens/worker-token.ts";

/** Checks signed credentials on both hosts; caches facts and invalidates them. */

export interface CredentialOptions {
  readonly clock: Clock;
  readonly tokens: TokenService;
  readonly keyRing: KeyRing;
  readonly users: SignInSessions;
  /** Reports ended sessions. */
  readonly sessions: { listen(listener: (ids: readonly string[]) => void): unknown };
  readonly identities: NodeIdentities;
  readonly memberships: Pick<Memberships, "membershipOf">;
  readonly changes: { listen(listener: (change: NodeChange) => void): unknown };
  readonly agentAccess: AgentIdentities;
  readonly agentChanges: { listen(listener: (change: { readonly agentId: string }) => void): unknown };
  readonly publicUrl: string;
  readonly modelsUrl: string;
}

interface NodeChange {
  readonly nodeId: string;
  readonly aspect: string;
}

export type Credentials = ReturnType<typeof createCredentials>;

/** More than one server uses within a second. */
const MAX_FACTS = 50_000;

export function createCredentials(deps: CredentialOptions) {
  const { clock, tokens, users, identities, publicUrl, modelsUrl } = deps;
  const verified = new VerifiedTokens(deps);
  const sessions = new FactCache({ read: async (id) => users.find(id), clock, max: MAX_FACTS });
  deps.sessions.listen((ids) => {
    for (const id of ids) sessions.forget(id);
  });
  const nodes = new FactCache({ read: async (id) => identities.find(id), clock, max: MAX_FACTS });
  deps.changes.listen(({ aspect, nodeId }) => {
    // Deleted, or enrolled again with another key.
    if (aspect === "removed" || aspect === "status") nodes.forget(nodeId);
  });
  const agents = new FactCache({ read: async (id) => deps.agentAccess.find(id), clock, max: MAX_FACTS });
  deps.agentChanges.listen(({ agentId }) => agents.forget(agentId));
  const memberships = new FactCache({
    read: async (key) => {
      const [projectId = "", userId = ""] = key.split(" ");
      return deps.memberships.membershipOf(projectId, userId);
    },
    clock,
    max: MAX_FACTS,
  });
  const members = { find: (projectId: string, userId: string) => memberships.find(`${projectId} ${userId}`) };
  const checks = { tokens: verified, sessions, nodes, modelsUrl };
  return {
    connectTokens: new ConnectTokens({ tokens, verified, nodes, sessions, memberships: members }),
    authenticate: createAuthenticate(checks),
    nodeCredentials: createNodeCredentials(checks),
    workers: new WorkerTokens({ verified, nodes, agents, publicUrl }),
  };
}
