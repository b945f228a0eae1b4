import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { AuditService } from "../../access/audit/audit-service.ts";
import { type ProjectAccess, projectNotFound } from "../../access/auth/access.ts";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import type { KeyService } from "../../access/keys/key-service.ts";
import type { SessionRemovalService } from "../../chat/sessions/session-removal-service.ts";
import type { AgentRemovalService } from "../../fleet/agents/agent-removal-service.ts";
import type { NodeRemovalService } from "../../fleet/nodes/actions/node-removal-service.ts";
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
 * Deletes projects (decisions/0012): one transaction disables the project, then its agents and nodes are removed one by one, then its rows.
 * The remaining work is derived from the rows, so it resumes after a crash.
 */
export class ProjectRemovalService {
  readonly #deps: ProjectRemovalDeps;
  readonly #listeners = new Set<() => void>();

  constructor(deps: ProjectRemovalDeps) {
    this.#deps = deps;
  }

  /**
   * After the commit, the project's keys stop working and nothing can be created in it. Idempotent.
   * @param input.confirmName the project's name, as confirmation.
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

  /** Calls back for each requested deletion. @returns a function that unsubscribes. */
  onRequest(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Ids of projects being deleted. */
  async waiting(): Promise<readonly string[]> {
    return this.#deps.stores.projects.listDeleting();
  }

  /** Continues a deletion. @throws AbortError from `stop` */
  async finish(projectId: string, stop: AbortSignal): Promise<void> {
    const { stores, agents, nodes, chats } = this.#deps;
    await agents.endAll(projectId, stop);
    await nodes.removeAll(projectId, stop);
    // In chunks: deleting them with the project's row would block other writers.
    await chats.removeAll(projectId, stop);
    await stores.projects.deleteMarked(projectId);
  }
}

function otherName(name: string): DomainError {
  return new DomainError(
    "invalid_request",
    `\`confirmName\`: must be the project's name, "${name}". Deleting it drains and deletes its nodes, revokes its keys, and permanently removes ` +
      "its members, invitations and chats.",
    { param: "confirmName" },
  );
}
