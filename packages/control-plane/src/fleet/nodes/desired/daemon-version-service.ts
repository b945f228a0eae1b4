import { isDeepStrictEqual } from "node:util";
import type { DaemonBuild } from "@fairlead/protocol/daemon-builds";
import type { DaemonUpdate, WantedDaemon } from "@fairlead/protocol/daemon-updates";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import type { AuditResource } from "../../../access/audit/audit.ts";
import type { AuditService } from "../../../access/audit/audit-service.ts";
import type { Operation, ProjectAccess } from "../../../access/auth/access.ts";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { NodePeople } from "../actions/node-actions-service.ts";
import { type NodeRecord, nodeResource } from "../node.ts";
import type { NodeChangeFeed } from "../node-change-feed.ts";
import { type NodeService, nodeNotFound } from "../node-service.ts";
import type { NodeStores } from "../records/node-stores.ts";
import {
  type DaemonTarget,
  type DaemonVersionView,
  mostSpecific,
  requireUsable,
  toDaemonVersionView,
  toWantedDaemon,
} from "./daemon-version.ts";

/** The available daemon builds, from the builds room. */
export interface ListedBuilds {
  list(): Promise<readonly DaemonBuild[]>;
}

export interface DaemonVersionDeps {
  readonly stores: NodeStores;
  readonly nodes: Pick<NodeService, "get">;
  readonly builds: ListedBuilds;
  readonly changes: NodeChangeFeed;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly people: NodePeople;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly installationId: string;
}

/** The daemons that a request applies to. */
export type NamedTarget = { readonly scope: "node" | "project"; readonly id: string } | { readonly scope: "fleet" };

interface Resolved {
  readonly target: DaemonTarget;
  readonly resource: AuditResource;
}

/** Requested daemon versions: what users request, what daemons receive, and what they report. */
export class DaemonVersionService {
  readonly #deps: DaemonVersionDeps;

  constructor(deps: DaemonVersionDeps) {
    this.#deps = deps;
  }

  /** @throws DomainError not_found, permission_denied */
  async get(caller: UserPrincipal, named: NamedTarget): Promise<DaemonVersionView> {
    const { target } = await this.#resolve(caller, named, "node.read");
    return toDaemonVersionView(target.scope, await this.#deps.stores.daemonVersions.of(target));
  }

  /**
   * Repeating the request for the same version makes daemons that gave up on it try again.
   * @param version null: withdraws the request. @throws DomainError not_found, permission_denied, invalid_request
   */
  async set(caller: UserPrincipal, named: NamedTarget, version: string | null): Promise<DaemonVersionView> {
    const { stores, builds, people } = this.#deps;
    const { target, resource } = await this.#resolve(caller, named, "node.update");
    if (version !== null) requireUsable(await builds.list(), version);
    const who = (await people.get(caller.userId)).email;
    const desired = await stores.transaction(async (within, transaction) => {
      await this.#hold(within, transaction, { caller, target });
      if (version === null) await within.daemonVersions.clear(target);
      else await within.daemonVersions.set(target, version, this.#deps.clock.now());
      if (target.scope === "node") await this.#tell(within, target.nodeId, requestText(who, version));
      await this.#deps.audit.record(transaction, {
        actor: caller,
        action: "daemon.version",
        projectId: target.scope === "fleet" ? null : target.projectId,
        resource,
        detail: { version },
      });
      return within.daemonVersions.of(target);
    });
    await this.#announce(target);
    return toDaemonVersionView(target.scope, desired);
  }

  /** The version sent to a node's daemon; null: no update. */
  async wantedBy(node: NodeRecord): Promise<WantedDaemon | null> {
    const { stores, builds } = this.#deps;
    const desired = mostSpecific(await stores.daemonVersions.of(targetOf(node)));
    if (desired === null || desired.version === node.daemonVersion) return null;
    const build = (await builds.list()).find(({ version }) => version === desired.version);
    if (build === undefined) return null;
    const { target } = desired;
    const meant = target.scope === "fleet" ? null : target.projectId;
    return toWantedDaemon(desired, build, target.scope === "node" ? 1 : await stores.nodes.count(meant));
  }

  /** The daemon's report about its update. */
  async observed(node: NodeRecord, update: DaemonUpdate | null): Promise<void> {
    if (isDeepStrictEqual(node.daemonUpdate, update)) return;
    await this.#deps.stores.nodes.setDaemonUpdate(node.id, update);
    this.#deps.changes.emit({ nodeId: node.id, projectId: node.projectId, aspect: "report" });
  }

  async #resolve(caller: UserPrincipal, named: NamedTarget, operation: Operation): Promise<Resolved> {
    const { nodes, access, installationId } = this.#deps;
    if (named.scope === "fleet") {
      if (!caller.platformAdmin) throw notPlatformAdmin();
      return { target: { scope: "fleet" }, resource: { type: "installation", id: installationId } };
    }
    if (named.scope === "project") {
      await access.require(caller, named.id, operation);
      return {
        target: { scope: "project", projectId: named.id },
        resource: { type: "project", id: named.id },
      };
    }
    const node = await nodes.get(caller, named.id);
    await access.require(caller, node.projectId, operation);
    return { target: targetOf(node), resource: nodeResource(node) };
  }

  /** Locks the target and the caller's permission until the end of the transaction. */
  async #hold(
    stores: NodeStores,
    transaction: Kysely<Database>,
    { caller, target }: { readonly caller: UserPrincipal; readonly target: DaemonTarget },
  ): Promise<void> {
    if (target.scope === "fleet") return;
    const { projectId } = target;
    await this.#deps.access.requireWithin(transaction, { caller, projectId, operation: "node.update" });
    if (target.scope === "node" && (await stores.nodes.findForUpdate(target.nodeId)) === null) throw nodeNotFound();
  }

  async #tell(stores: NodeStores, nodeId: string, message: string): Promise<void> {
    const { clock, ids } = this.#deps;
    const id = ids.next("event");
    const kind = "daemon_version_requested";
    await stores.events.append([{ id, nodeId, at: clock.now(), kind, status: null, message }]);
  }

  async #announce(target: DaemonTarget): Promise<void> {
    const { changes, stores } = this.#deps;
    if (target.scope === "node") {
      changes.emit({ nodeId: target.nodeId, projectId: target.projectId, aspect: "desired" });
      return;
    }
    const meant = await stores.nodes.ids(target.scope === "project" ? target.projectId : null);
    for (const { id: nodeId, projectId } of meant) changes.emit({ nodeId, projectId, aspect: "desired" });
  }
}

function targetOf({ id, projectId }: NodeRecord): DaemonTarget & { scope: "node" } {
  return { scope: "node", nodeId: id, projectId };
}

function requestText(who: string, version: string | null): string {
  return version === null
    ? `${who} withdrew the request for a daemon version of this node.`
    : `${who} requested daemon version ${version}.`;
}

function notPlatformAdmin(): DomainError {
  return new DomainError(
    "permission_denied",
    "Only platform administrators can update the daemons of the whole fleet.",
  );
}
