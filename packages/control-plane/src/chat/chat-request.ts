import { DomainError } from "@fairlead/protocol/errors";
import type { ProjectId } from "@fairlead/protocol/ids";
import type { FastifyRequest } from "fastify";
import type { Operation, ProjectAccess } from "../auth/access.ts";
import { principalOf } from "../http/require-principal.ts";
import type { ChatScope } from "./chat-scope.ts";

/** What every chat route reads of a request. */

export type ChatOperation = Extract<Operation, `chat.${string}`>;

/** Whose sessions the call is about. @throws DomainError `missing_project_header`, and those of the caller's role. */
export async function scopeOf(
  access: Pick<ProjectAccess, "require">,
  request: FastifyRequest,
  operation: ChatOperation,
): Promise<ChatScope> {
  const caller = principalOf(request, "user");
  const projectId = headerOf(request, "service-project-id");
  if (projectId === null) {
    throw new DomainError("missing_project_header", "Name the project: header `Service-Project-Id`.", {
      param: "Service-Project-Id",
    });
  }
  await access.require(caller, projectId, operation);
  return { projectId: projectId as ProjectId, userId: caller.userId };
}

/** An empty header is none. */
export function headerOf({ headers }: FastifyRequest, name: string): string | null {
  const value = headers[name];
  return typeof value === "string" && value !== "" ? value : null;
}
