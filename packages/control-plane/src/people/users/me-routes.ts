import { type Role, roleSchema } from "@fairlead/protocol/resources";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import { nameSchema } from "@fairlead/protocol/values/text";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import type { PlatformApp } from "../../http/platform-host.ts";
import { reference } from "../../http/requests/fields.ts";
import { principalOf, requirePrincipal } from "../../http/requests/require-principal.ts";
import type { ProjectRecord } from "../projects/project.ts";
import type { ProjectService } from "../projects/project-service.ts";
import type { SessionService } from "./session-service.ts";
import type { SignInSession, UserRecord } from "./user.ts";
import type { UserService } from "./user-service.ts";

export interface MeRouteServices {
  readonly users: UserService;
  readonly sessions: SessionService;
  readonly projects: ProjectService;
}

const tags = ["Users"];
const PROJECTS_AT_ONCE = 200;

const userSchema = z
  .object({
    id: z.string(),
    email: z.string(),
    name: z.string(),
    platformAdmin: z.boolean().describe("Set from the CLI on the server's machine."),
    createdAt: z.string(),
  })
  .meta({ id: "User" });

const sessionSchema = z
  .object({
    id: z.string(),
    userAgent: z.string().describe("The name of the browser or program. Empty if unknown."),
    address: z.string().describe("IP address at the sign-in. Empty if unknown."),
    createdAt: z.string(),
    expiresAt: z.string(),
    current: z.boolean().describe("Whether this is the session of this call."),
  })
  .meta({ id: "SignInSession" });

const getMe = {
  summary: "Get your user and your projects",
  operationId: "getMe",
  tags,
  response: {
    200: z.object({
      ...userSchema.shape,
      projects: z.array(z.object({ id: z.string(), name: z.string(), role: roleSchema })),
    }),
  },
} satisfies FastifySchema;

const updateMe = {
  summary: "Change your name",
  operationId: "updateMe",
  tags,
  body: z.strictObject({ name: nameSchema }).meta({ examples: [{ name: "Ann Smith" }] }),
  response: { 200: userSchema },
} satisfies FastifySchema;

const listMySessions = {
  summary: "List your sessions",
  description: "Browsers and programs that you signed in to, newest first.",
  operationId: "listMySessions",
  tags,
  response: { 200: z.object({ sessions: z.array(sessionSchema) }) },
} satisfies FastifySchema;

const deleteMySession = {
  summary: "End one of your sessions",
  description: "All tokens of the session stop working within one second.",
  operationId: "deleteMySession",
  tags,
  errors: ["not_found"],
  params: z.object({ id: reference("The session ID.") }),
  response: { 200: z.object({}) },
} satisfies FastifySchema;

/** What users can see and change about themselves, regardless of roles. */
export function registerMeRoutes(app: PlatformApp, { users, sessions, projects }: MeRouteServices): void {
  const onRequest = requirePrincipal("user");

  app.get("/v1/me", { onRequest, schema: getMe }, async (request) => {
    const caller = principalOf(request, "user");
    return { ...toUser(await users.get(caller.userId)), projects: await membershipsOf(caller, projects) };
  });

  app.patch("/v1/me", { onRequest, schema: updateMe }, async (request) => {
    const actor = principalOf(request, "user");
    return toUser(await users.rename({ userId: actor.userId, name: request.body.name, actor }));
  });

  app.get("/v1/me/sessions", { onRequest, schema: listMySessions }, async (request) => {
    const { userId, sessionId } = principalOf(request, "user");
    const list = await sessions.list(userId);
    return { sessions: list.map((session) => toSession(session, sessionId)) };
  });

  app.delete("/v1/me/sessions/:id", { onRequest, schema: deleteMySession }, async (request) => {
    const actor = principalOf(request, "user");
    await sessions.revoke({ userId: actor.userId, sessionId: request.params.id, actor });
    return {};
  });
}

interface Membership {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
}

/** All of them, oldest first. */
async function membershipsOf(caller: UserPrincipal, projects: ProjectService): Promise<Membership[]> {
  const roles = new Map((await projects.rolesOf(caller.userId)).map(({ projectId, role }) => [projectId, role]));
  const memberships: Membership[] = [];
  let after: string | null = null;
  do {
    const page: readonly ProjectRecord[] = await projects.list(caller, { after, limit: PROJECTS_AT_ONCE });
    for (const { id, name } of page) {
      const role = roles.get(id);
      // A project joined concurrently appears next time.
      if (role !== undefined) memberships.push({ id, name, role });
    }
    after = page.length < PROJECTS_AT_ONCE ? null : (page.at(-1)?.id ?? null);
  } while (after !== null);
  return memberships;
}

function toUser({ createdAt, ...user }: UserRecord): z.infer<typeof userSchema> {
  return { ...user, createdAt: rfc3339(createdAt) };
}

function toSession(session: SignInSession, currentId: string | undefined): z.infer<typeof sessionSchema> {
  return {
    id: session.id,
    userAgent: session.userAgent ?? "",
    address: session.address ?? "",
    createdAt: rfc3339(session.createdAt),
    expiresAt: rfc3339(session.expiresAt),
    current: session.id === currentId,
  };
}
