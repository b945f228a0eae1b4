import type { ProjectId, UserId } from "@fairlead/protocol/values/ids";

/** Whose sessions: one user's in one project (docs/interface.md §2). Whatever lies outside of it does not exist. */
export interface ChatScope {
  readonly projectId: ProjectId;
  readonly userId: UserId;
}
