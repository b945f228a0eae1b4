import type { ProjectId, UserId } from "@fairlead/protocol/ids";

/** Whose sessions: one user's in one project (interface §2). Whatever lies outside of it does not exist. */
export interface ChatScope {
  readonly projectId: ProjectId;
  readonly userId: UserId;
}
