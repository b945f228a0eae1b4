import { type Authenticate, createAuthenticate } from "./auth/authenticate.ts";
import { VerifiedTokens } from "./auth/credential-cache.ts";
import { FactCache } from "./auth/fact-cache.ts";
import { WorkerTokens } from "./auth/worker-token.ts";
import type { Context } from "./context.ts";
import type { NodeChanges } from "./nodes/node-changes.ts";
import type { NodeIdentities } from "./nodes/node-identities.ts";

/** Composition: who checks credentials on both hosts, what is remembered of them, and what makes it forgotten. */

/** More than are in use within one second, on one server. */
const MAX_FACTS = 50_000;

export interface Credentials {
  readonly authenticate: Authenticate;
  readonly workers: WorkerTokens;
}

export function createCredentials(
  { ports: { clock }, installation, addresses }: Pick<Context, "ports" | "installation" | "addresses">,
  { identities, changes }: { readonly identities: NodeIdentities; readonly changes: NodeChanges },
): Credentials {
  const { tokens, keyRing, users } = installation;
  const { publicUrl, modelsUrl } = addresses;
  const verified = new VerifiedTokens({ tokens, keyRing, clock });
  const sessions = new FactCache({ read: (id) => users.find(id), clock, max: MAX_FACTS });
  installation.sessions.listen((ids) => {
    for (const id of ids) sessions.forget(id);
  });
  const nodes = new FactCache({ read: (id) => identities.find(id), clock, max: MAX_FACTS });
  changes.listen(({ aspect, nodeId }) => {
    // Deleted, or enrolled anew with another key.
    if (aspect === "removed" || aspect === "status") nodes.forget(nodeId);
  });
  return {
    authenticate: createAuthenticate({ tokens: verified, sessions, nodes, modelsUrl }),
    workers: new WorkerTokens({ tokens, verified, nodes, publicUrl }),
  };
}
