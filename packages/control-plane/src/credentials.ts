import type { Clock } from "@fairlead/protocol/clock";
import type { Memberships } from "./auth/access.ts";
import {
  type Authenticate,
  createAuthenticate,
  type NodeIdentities,
  type SignInSessions,
} from "./auth/authenticate.ts";
import { ConnectTokens } from "./auth/connect-token.ts";
import { VerifiedTokens } from "./auth/credential-cache.ts";
import { FactCache } from "./auth/fact-cache.ts";
import type { KeyRing } from "./auth/key-ring.ts";
import type { TokenService } from "./auth/tokens.ts";
import { type AgentIdentities, WorkerTokens } from "./auth/worker-token.ts";
import type { Addresses } from "./context.ts";
import type { NodeChanges } from "./nodes/node-changes.ts";
import type { SessionService } from "./users/session-service.ts";

/** Composition: who checks signed credentials on both hosts, what is remembered for that, and what makes it forgotten. */

export interface CredentialDeps {
  readonly clock: Clock;
  readonly tokens: TokenService;
  readonly keyRing: KeyRing;
  readonly users: SignInSessions;
  readonly sessions: Pick<SessionService, "listen">;
  readonly identities: NodeIdentities;
  readonly memberships: Pick<Memberships, "membershipOf">;
  readonly changes: NodeChanges;
  readonly agentStandings: AgentIdentities;
  readonly agentChanges: { listen(listener: (change: { readonly agentId: string }) => void): unknown };
  readonly addresses: Pick<Addresses, "publicUrl" | "modelsUrl">;
}

export interface Credentials {
  readonly authenticate: Authenticate;
  readonly workers: WorkerTokens;
  readonly connectTokens: ConnectTokens;
}

/** More than are in use within one second, on one server. */
const MAX_FACTS = 50_000;

export function createCredentials(deps: CredentialDeps): Credentials {
  const { clock, tokens, users, identities, addresses } = deps;
  const verified = new VerifiedTokens(deps);
  const sessions = new FactCache({ read: async (id) => users.find(id), clock, max: MAX_FACTS });
  deps.sessions.listen((ids) => {
    for (const id of ids) sessions.forget(id);
  });
  const nodes = new FactCache({ read: async (id) => identities.find(id), clock, max: MAX_FACTS });
  deps.changes.listen(({ aspect, nodeId }) => {
    // Deleted, or enrolled anew with another key.
    if (aspect === "removed" || aspect === "status") nodes.forget(nodeId);
  });
  const agents = new FactCache({ read: async (id) => deps.agentStandings.find(id), clock, max: MAX_FACTS });
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
  return {
    connectTokens: new ConnectTokens({ tokens, verified, nodes, sessions, memberships: members }),
    authenticate: createAuthenticate({ tokens: verified, sessions, nodes, modelsUrl: addresses.modelsUrl }),
    workers: new WorkerTokens({ verified, nodes, agents, publicUrl: addresses.publicUrl }),
  };
}
