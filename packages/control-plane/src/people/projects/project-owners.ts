import { growingCache } from "@fairlead/hosting/growing-cache";
import type { LRUCache } from "lru-cache";
import type { ProjectStore } from "./project-store.ts";

const MOST = 50_000;

/** Who owns each project. A project's owner never changes, so that each is read once. */
export class CachedProjectOwners {
  readonly #projects: Pick<ProjectStore, "find">;
  readonly #known: LRUCache<string, string> = growingCache(MOST);

  constructor(projects: Pick<ProjectStore, "find">) {
    this.#projects = projects;
  }

  /** @returns the user's id, without a promise where it is known; of a project that is gone its own id. */
  ownerOf(projectId: string): string | Promise<string> {
    return this.#known.get(projectId) ?? this.#read(projectId);
  }

  async #read(projectId: string): Promise<string> {
    const project = await this.#projects.find(projectId);
    if (project === null) return projectId;
    this.#known.set(projectId, project.userId);
    return project.userId;
  }
}
