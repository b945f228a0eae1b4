import { DomainError } from "@fairlead/protocol/errors";
import type { ProjectId } from "@fairlead/protocol/values/ids";
import type { FastifyRequest } from "fastify";
import type { Operation, ProjectAccess } from "../../access/auth/access.ts";
import { principalOf } from "../../http/requests/require-principal.ts";
import type { ChatScope } from "../items/chat-scope.ts";

/** What all chat routes read from a request. */

export type ChatOperation = Extract<Operation, `chat.${string}`>;

/** The project and user of the call. @throws DomainError `missing_project_header`, and the errors of the role check. */
export async function scopeOf(
  access: Pick<ProjectAccess, "require">,
  request: FastifyRequest,
  operation: ChatOperation,
): Promise<ChatScope> {
  const caller = principalOf(request, "user");
  const projectId = headerOf(request, "service-project-id");
  if (projectId === null) {
    throw new DomainError("missing_project_header", "The header `Service-Project-Id` is required.", {
      param: "Service-Project-Id",
    });
  }
  await access.require(caller, projectId, operation);
  return { projectId: projectId as ProjectId, userId: caller.userId };
}

/** An empty header counts as absent. */
export function headerOf({ headers }: FastifyRequest, name: string): string | null {
  const value = headers[name];
  return typeof value === "string" && value !== "" ? value : null;
}
