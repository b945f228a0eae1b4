import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { AgentRemovalService } from "../agents/agent-removal-service.ts";
import type { AuditService } from "../audit/audit-service.ts";
import { type ProjectAccess, projectNotFound } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import type { SessionRemovalService } from "../chat/session-removal-service.ts";
import type { KeyService } from "../keys/key-service.ts";
import type { NodeRemovalService } from "../nodes/node-removal-service.ts";
import { isNameOf, projectResource } from "./project.ts";
import type { ProjectStores } from "./project-stores.ts";

export interface ProjectRemovalDeps {
  readonly stores: ProjectStores;
  readonly access: ProjectAccess;
  readonly keys: Pick<KeyService, "disableKeysOfProject" | "forget">;
  readonly agents: Pick<AgentRemovalService, "endAll">;
  readonly nodes: Pick<NodeRemovalService, "removeAll">;
  readonly chats: Pick<SessionRemovalService, "removeAll">;
  readonly audit: AuditService;
  readonly clock: Clock;
}

/**
 * The end of a project (decisions/0012): one transaction takes it out of use, then its agents and its nodes are ended one by one, then its rows
 * are deleted. What is left to do is told by the rows themselves, so it goes on after a crash wherever it broke off.
 */
export class ProjectRemovalService {
  readonly #deps: ProjectRemovalDeps;
  readonly #listeners = new Set<() => void>();

  constructor(deps: ProjectRemovalDeps) {
    this.#deps = deps;
  }

  /**
   * From its commit on no key of the project works and nothing can be made in it. Asking again changes nothing.
   * @param input.confirmName the project's name, so that nobody deletes the wrong one.
   * @throws DomainError not_found, permission_denied, invalid_request
   */
  async request(
    caller: UserPrincipal,
    { projectId, confirmName }: { readonly projectId: string; readonly confirmName: string },
  ): Promise<void> {
    const { stores, access, keys, audit, clock } = this.#deps;
    await access.require(caller, projectId, "project.delete");
    const keyIds = await stores.transaction(async ({ projects }, transaction) => {
      await access.requireWithin(transaction, { caller, projectId, operation: "project.delete" });
      const project = await projects.find(projectId);
      if (!project) throw projectNotFound();
      if (!isNameOf(project, confirmName)) throw otherName(project.name);
      if (project.deletingSince !== null) return [];
      await projects.markDeleting(projectId, clock.now());
      const disabled = await keys.disableKeysOfProject(transaction, projectId);
      await audit.record(transaction, {
        actor: caller,
        action: "project.delete",
        projectId,
        resource: projectResource(project),
        detail: { keysDisabled: disabled.length },
      });
      return disabled;
    });
    keys.forget(keyIds);
    for (const listener of this.#listeners) listener();
  }

  /** Calls back whenever a deletion was asked for. @returns the call that ends it. */
  onRequest(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Ids of projects whose deletion was asked for and is not over. */
  async waiting(): Promise<readonly string[]> {
    return this.#deps.stores.projects.listDeleting();
  }

  /** Does what is left of a deletion. @throws AbortError by `stop` */
  async finish(projectId: string, stop: AbortSignal): Promise<void> {
    const { stores, agents, nodes, chats } = this.#deps;
    await agents.endAll(projectId, stop);
    await nodes.removeAll(projectId, stop);
    // In portions: with the project's row they would all go at once, and everybody would wait.
    await chats.removeAll(projectId, stop);
    await stores.projects.deleteMarked(projectId);
  }
}

function otherName(name: string): DomainError {
  return new DomainError(
    "invalid_request",
    `\`confirmName\`: must be the project's name, "${name}". Deleting it drains and deletes its nodes, revokes its keys, and removes ` +
      "its members, invitations and chats, for good.",
    { param: "confirmName" },
  );
}
