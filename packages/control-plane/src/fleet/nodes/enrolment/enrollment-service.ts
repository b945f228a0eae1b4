import { createHash, randomBytes } from "node:crypto";
import { growingCache } from "@fairlead/hosting/growing-cache";
import type { NamedBuild } from "@fairlead/protocol/daemon-builds";
import {
  ASSERTION_TTL_SECONDS,
  CLOCK_SKEW_SECONDS,
  type EnrollAnswer,
  type EnrollRequest,
  formatBootstrapToken,
  type IdentityToken,
} from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource, NodeId, ProjectId } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import type { AuditEntry } from "../../../access/audit/audit.ts";
import type { AuditService } from "../../../access/audit/audit-service.ts";
import type { ProjectAccess } from "../../../access/auth/access.ts";
import type { CallOrigin, UserPrincipal } from "../../../access/auth/principal.ts";
import {
  assertionRefused,
  keyThumbprint,
  verifyAssertion,
  verifyEnrollProof,
} from "../../../access/auth/tokens/node-assertion.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import { type NodeRecord, nodeResource } from "../node.ts";
import type { NodeRates } from "../node-rates.ts";
import { type NodeService, nodeNotFound } from "../node-service.ts";
import type { NodeStatusService } from "../observed/node-status-service.ts";
import type { BootstrapTokenRecord } from "../records/bootstrap-token-store.ts";
import type { NodeStores } from "../records/node-stores.ts";

export const BOOTSTRAP_TOKEN_TTL_MS = 30 * 60_000;
export const IDENTITY_TTL_SECONDS = 24 * 3600;

/** Signs identity tokens; implemented by the token service of `auth/`. */
export interface IdentityIssuer {
  issueNodeIdentity(identity: {
    readonly nodeId: string;
    readonly projectId: string;
    readonly keyThumbprint: string;
    readonly ttlSeconds: number;
  }): Promise<string>;
}

/** The daemon build for new nodes, if any; from the builds room. */
export interface OfferedBuilds {
  forNewNodes(): Promise<NamedBuild | null>;
}

export interface EnrollmentDeps {
  readonly stores: NodeStores;
  readonly nodes: NodeService;
  readonly status: NodeStatusService;
  readonly rates: Pick<NodeRates, "require">;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly issuer: IdentityIssuer;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly installationId: string;
  /** The platform host's URL for daemons: from the config, never from a request. */
  readonly publicUrl: string;
  readonly builds: OfferedBuilds;
}

/** Returned only once. `expiresAt` is Unix milliseconds. */
export interface FreshToken {
  readonly id: string;
  readonly token: string;
  readonly expiresAt: number;
}

interface Within {
  readonly stores: NodeStores;
  readonly transaction: Kysely<Database>;
}

interface Keeping {
  readonly actor: AuditEntry["actor"];
  readonly node: NodeRecord;
  readonly fresh: FreshToken;
}

export interface EnrollCall {
  readonly nodeId: string;
  /** The whole bootstrap token, as received. */
  readonly bootstrapToken: string;
  readonly request: EnrollRequest;
  readonly origin: CallOrigin;
}

/** Enrollment of nodes and renewal of their identity. */
export class EnrollmentService {
  readonly #deps: EnrollmentDeps;
  readonly #usedAssertions = growingCache<true>(100_000, {
    ttl: (ASSERTION_TTL_SECONDS + 2 * CLOCK_SKEW_SECONDS) * 1000,
  });

  constructor(deps: EnrollmentDeps) {
    this.#deps = deps;
  }

  /** A new token for one node; older unused ones become invalid. @returns the token, returned only here, and its expiry (Unix ms). */
  async issueBootstrapToken(caller: UserPrincipal, nodeId: string): Promise<{ token: string; expiresAt: number }> {
    const node = await this.#deps.nodes.get(caller, nodeId);
    await this.#deps.access.require(caller, node.projectId, "node.bootstrap");
    const fresh = await this.newToken(nodeId);
    const { stores, status } = this.#deps;
    const entered = await stores.transaction(async (within, transaction) => {
      if (!(await within.nodes.findForUpdate(nodeId))) throw nodeNotFound();
      await this.keepToken({ stores: within, transaction }, { actor: caller, node, fresh });
      const reason = "Waiting for the daemon to enroll.";
      return status.applyWithin(within, nodeId, { event: "bootstrap_token_issued", reason });
    });
    if (entered) status.announce(entered);
    return { token: fresh.token, expiresAt: fresh.expiresAt };
  }

  /** Valid once it is stored. */
  async newToken(nodeId: string): Promise<FreshToken> {
    const { builds, publicUrl: url, clock, ids } = this.#deps;
    const secret = randomBytes(32).toString("base64url");
    const build = (await builds.forNewNodes()) ?? undefined;
    const token = formatBootstrapToken({ url, nodeId, secret, build });
    return { id: ids.next("bootstrapToken"), token, expiresAt: clock.now() + BOOTSTRAP_TOKEN_TTL_MS };
  }

  /** Invalidates unused tokens, in the caller's transaction, which holds the node's row. */
  async keepToken({ stores, transaction }: Within, { actor, node, fresh }: Keeping): Promise<void> {
    const { id, token, expiresAt } = fresh;
    const kept = { id, nodeId: node.id, tokenHash: sha256(token), expiresAt };
    await stores.bootstrapTokens.issue(kept, this.#deps.clock.now());
    await this.#deps.audit.record(transaction, {
      actor,
      action: "node.bootstrap",
      projectId: node.projectId,
      resource: nodeResource(node),
      detail: { bootstrapTokenId: id },
    });
  }

  /** Binds the token to the first key. The same key may retry after a lost response; others are rejected. */
  async enroll(call: EnrollCall): Promise<EnrollAnswer> {
    const tokenHash = sha256(call.bootstrapToken);
    const token = await this.#findToken(call.nodeId, tokenHash);
    const thumbprint = keyThumbprint(call.request.signingKey);
    this.#refuseStale(token);
    await verifyEnrollProof(call.request.proof, {
      key: call.request.signingKey,
      nodeId: call.nodeId,
      bootstrapTokenSha256: tokenHash,
    });
    this.#deps.rates.require(call.nodeId, "enroll");
    const node = await this.#bind(call, token, thumbprint);
    return {
      nodeId: node.id,
      projectId: node.projectId,
      installationId: this.#deps.installationId,
      ...(await this.#identityFor(node, thumbprint)),
    };
  }

  /** A new identity token for an enrolled node, for an assertion by its key. @throws DomainError invalid_credential */
  async renewIdentity(nodeId: string, assertion: string): Promise<IdentityToken> {
    const node = await this.#deps.stores.nodes.find(nodeId);
    if (node === null) await this.#tellDeletion(nodeId, assertion);
    if (!node?.signingKey || node.status === "deleting") throw assertionRefused();
    const jti = await verifyAssertion(assertion, {
      key: node.signingKey,
      nodeId,
      installationId: this.#deps.installationId,
      now: this.#deps.clock.now(),
    });
    if (this.#usedAssertions.has(jti)) {
      throw new DomainError("invalid_credential", "This assertion was already used. Sign a new one for every call.");
    }
    this.#deps.rates.require(nodeId, "identityToken");
    this.#usedAssertions.set(jti, true);
    return this.#identityFor(node, keyThumbprint(node.signingKey));
  }

  /** Only the holder of the node's key learns that it was deleted: its daemon then removes its workloads. */
  async #tellDeletion(nodeId: string, assertion: string): Promise<void> {
    const key = await this.#deps.stores.deleted.signingKey(nodeId);
    if (key === null) return;
    const { installationId, clock } = this.#deps;
    await verifyAssertion(assertion, { key, nodeId, installationId, now: clock.now() });
    throw new DomainError("node_deleted", "This node has been deleted.");
  }

  async #findToken(nodeId: string, tokenHash: string): Promise<BootstrapTokenRecord> {
    const token = await this.#deps.stores.bootstrapTokens.findByHash(tokenHash);
    if (!token || token.nodeId !== nodeId || token.voidedAt !== null) {
      throw new DomainError(
        "invalid_credential",
        "This bootstrap token is unknown or no longer valid, or belongs to another node. Issue a new one.",
      );
    }
    return token;
  }

  #refuseStale(token: BootstrapTokenRecord): void {
    if (token.usedBy === null && token.expiresAt <= this.#deps.clock.now()) {
      throw new DomainError("expired_credential", "This bootstrap token has expired. Issue a new one.");
    }
  }

  async #bind(call: EnrollCall, token: BootstrapTokenRecord, thumbprint: string): Promise<NodeRecord> {
    const now = this.#deps.clock.now();
    const { request } = call;
    const outcome = await this.#deps.stores.transaction(async (stores, transaction) => {
      const node = await stores.nodes.findForUpdate(call.nodeId);
      if (!node || node.status === "deleting") throw nodeNotFound();
      if (!(await stores.bootstrapTokens.spend(token.id, thumbprint, now)))
        return { node, refused: true, entered: null };
      const known = node.signingKey !== null && keyThumbprint(node.signingKey) === thumbprint;
      if (known) return { node, refused: false, entered: null };
      await stores.nodes.setEnrolled(node.id, { ...request, at: now, publicIp: call.origin.address });
      const entered = await this.#deps.status.applyWithin(stores, node.id, {
        event: "enrolled",
        reason: `Enrolled with daemon ${request.daemonVersion}; waiting for its workloads.`,
      });
      await this.#deps.audit.record(transaction, {
        actor: { kind: "node", nodeId: node.id as NodeId, projectId: node.projectId as ProjectId, origin: call.origin },
        action: "node.enroll",
        projectId: node.projectId,
        resource: nodeResource(node),
        detail: { bootstrapTokenId: token.id, keyThumbprint: thumbprint },
      });
      return { node, refused: false, entered };
    });
    if (outcome.refused) await this.#refuseSecondKey(call, outcome.node);
    if (outcome.entered) this.#deps.status.announce(outcome.entered);
    return outcome.node;
  }

  async #refuseSecondKey({ origin }: EnrollCall, node: NodeRecord): Promise<never> {
    const message =
      "Another daemon tried to enroll with a bootstrap token that was already used. If that was your daemon, issue a new token.";
    const { stores, audit, ids, clock } = this.#deps;
    await stores.transaction(async ({ events }, transaction) => {
      const event = { nodeId: node.id, at: clock.now(), kind: "enroll_refused", status: null, message };
      await events.append([{ id: ids.next("event"), ...event }]);
      await audit.record(transaction, {
        actor: { kind: "system", name: "enrollment", origin },
        action: "node.enroll_refused",
        projectId: node.projectId,
        resource: nodeResource(node),
      });
    });
    throw new DomainError(
      "bootstrap_token_used",
      "This bootstrap token was already used by another daemon. Issue a new one.",
    );
  }

  async #identityFor(node: NodeRecord, thumbprint: string): Promise<IdentityToken> {
    const identityToken = await this.#deps.issuer.issueNodeIdentity({
      nodeId: node.id,
      projectId: node.projectId,
      keyThumbprint: thumbprint,
      ttlSeconds: IDENTITY_TTL_SECONDS,
    });
    return { identityToken, expiresIn: IDENTITY_TTL_SECONDS };
  }
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
