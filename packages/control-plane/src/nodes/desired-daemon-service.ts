import { isDeepStrictEqual } from "node:util";
import type { Clock } from "@fairlead/protocol/clock";
import type { DaemonBuild } from "@fairlead/protocol/daemon-builds";
import type { DaemonUpdate, WantedDaemon } from "@fairlead/protocol/daemon-updates";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Kysely } from "kysely";
import type { AuditResource } from "../audit/audit.ts";
import type { AuditService } from "../audit/audit-service.ts";
import type { Operation, ProjectAccess } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import type { Database } from "../db/schema.ts";
import {
  type DaemonTarget,
  type DesiredDaemonView,
  mostSpecific,
  requireUsable,
  toDesiredDaemonView,
  toWantedDaemon,
} from "./desired-daemon.ts";
import { type NodeRecord, nodeResource } from "./node.ts";
import type { NodeChanges } from "./node-changes.ts";
import type { People } from "./node-life-service.ts";
import { type NodeService, nodeNotFound } from "./node-service.ts";
import type { NodeStores } from "./node-stores.ts";

/** Which builds of the daemon are offered; the room of builds knows. */
export interface ListedBuilds {
  list(): Promise<readonly DaemonBuild[]>;
}

export interface DesiredDaemonDeps {
  readonly stores: NodeStores;
  readonly nodes: Pick<NodeService, "get">;
  readonly builds: ListedBuilds;
  readonly changes: NodeChanges;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly people: People;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly installationId: string;
}

/** Whose daemons somebody means, as the routes name them. */
export type NamedTarget = { readonly scope: "node" | "project"; readonly id: string } | { readonly scope: "fleet" };

interface Resolved {
  readonly target: DaemonTarget;
  readonly resource: AuditResource;
}

/** Which version daemons are to run: what people ask for, what daemons are told of it, and what they say of it. */
export class DesiredDaemonService {
  readonly #deps: DesiredDaemonDeps;

  constructor(deps: DesiredDaemonDeps) {
    this.#deps = deps;
  }

  /** @throws DomainError not_found, permission_denied */
  async get(caller: UserPrincipal, named: NamedTarget): Promise<DesiredDaemonView> {
    const { target } = await this.#resolve(caller, named, "node.read");
    return toDesiredDaemonView(target.scope, await this.#deps.stores.desiredDaemons.of(target));
  }

  /**
   * Asked again for the version that is asked for already, daemons that have given it up try it again.
   * @param version null: nothing is asked for here any more. @throws DomainError not_found, permission_denied, invalid_request
   */
  async set(caller: UserPrincipal, named: NamedTarget, version: string | null): Promise<DesiredDaemonView> {
    const { stores, builds, people } = this.#deps;
    const { target, resource } = await this.#resolve(caller, named, "node.update");
    if (version !== null) requireUsable(await builds.list(), version);
    const who = (await people.get(caller.userId)).email;
    const desired = await stores.transaction(async (within, transaction) => {
      await this.#hold(within, transaction, { caller, target });
      if (version === null) await within.desiredDaemons.clear(target);
      else await within.desiredDaemons.set(target, version, this.#deps.clock.now());
      if (target.scope === "node") await this.#tell(within, target.nodeId, requestText(who, version));
      await this.#deps.audit.record(transaction, {
        actor: caller,
        action: "daemon.version",
        projectId: target.scope === "fleet" ? null : target.projectId,
        resource,
        detail: { version },
      });
      return within.desiredDaemons.of(target);
    });
    await this.#announce(target);
    return toDesiredDaemonView(target.scope, desired);
  }

  /** What a node's daemon is told; null where it is to stay as it is. */
  async wantedBy(node: NodeRecord): Promise<WantedDaemon | null> {
    const { stores, builds } = this.#deps;
    const desired = mostSpecific(await stores.desiredDaemons.of(targetOf(node)));
    if (desired === null || desired.version === node.daemonVersion) return null;
    const build = (await builds.list()).find(({ version }) => version === desired.version);
    if (build === undefined) return null;
    const { target } = desired;
    const meant = target.scope === "fleet" ? null : target.projectId;
    return toWantedDaemon(desired, build, target.scope === "node" ? 1 : await stores.nodes.count(meant));
  }

  /** What a daemon says of its update. */
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

  /** Until the end of the transaction the target is there, and the caller may do this. */
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
    ? `${who} asks for no version of the daemon for this node any more.`
    : `${who} asked for version ${version} of the daemon.`;
}

function notPlatformAdmin(): DomainError {
  return new DomainError("permission_denied", "The whole fleet's daemons are for platform administrators.");
}
