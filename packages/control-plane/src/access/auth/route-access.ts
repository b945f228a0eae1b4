import { DIALECT_SPECS } from "@fairlead/dialects/dialect-specs";
import { DIALECTS } from "@fairlead/protocol/providers";
import type { Role } from "@fairlead/protocol/resources";
import { mayDo, type Operation } from "./access.ts";

/**
 * Access rules of every route of both hosts. `docs/access.md` is generated from it, and `test/access-matrix` checks the running hosts against it.
 * A route without an entry fails that test.
 */

/** Kinds of callers. */
export const CALLERS = {
  nobody: "sends no credential",
  malformed: "sends an invalid credential",
  expired: "an expired session token",
  signedOut: "a session token of a revoked session",
  stranger: "a user who is not a member of the project (an owner of another one)",
  viewer: "a member of the project with this role",
  member: "a member of the project with this role",
  admin: "a member of the project with this role",
  owner: "a member of the project with this role",
  platformAdmin: "a platform administrator who is not a member of the project",
  browser: "a browser with a sign-in cookie and no bearer token",
  node: "the daemon of this node, with its identity token",
  otherNode: "the daemon of another node of the project",
  bootstrap: "an unused bootstrap token of this node",
  key: "a project key of the project",
  disabledKey: "a disabled project key",
  otherKey: "a project key of another project",
  worker: "a worker-plane token of an agent in the project",
  connect: "a workload-connect token of this node",
} as const;

export type Caller = keyof typeof CALLERS;
export const CALLER_NAMES = Object.keys(CALLERS) as Caller[];

/** `yes`: allowed. Otherwise the status of the error; 303: redirect to the sign-in page. */
export type Outcome = "yes" | 303 | 401 | 403 | 404;

/** Who may call a route, in the order in which the hosts check. */
export type RouteAccess =
  /** Everyone. */
  | { readonly for: "anybody" }
  /** Everyone with a session. */
  | { readonly for: "session" }
  /** No one: first-start links, once users exist. */
  | { readonly for: "nobody" }
  /** A signed-in browser. */
  | { readonly for: "page" }
  /** Members whose role allows the operation. For other sessions the resource does not exist. */
  | {
      readonly for: "role";
      readonly operation: Operation;
      readonly orTheNode?: true;
      readonly orPlatformAdmin?: true;
      /** The status for other sessions if not 404 (docs/interface.md §7). */
      readonly others?: 403;
    }
  /** Only the node itself. */
  | { readonly for: "node" }
  /** Platform administrators; `others` is the status for other sessions. */
  | { readonly for: "platformAdmin"; readonly others: 403 | 404; readonly strangers?: 404 }
  /** A credential that only this route accepts. */
  | { readonly for: "bootstrap" | "assertion" }
  /** A project key or worker token; `elsewhere` is the status for one of another project. */
  | { readonly for: "key"; readonly elsewhere: "yes" | 404 }
  /** A workload-connect token, and no other credential. */
  | { readonly for: "connect" };

const anybody: RouteAccess = { for: "anybody" };
const session: RouteAccess = { for: "session" };
const page: RouteAccess = { for: "page" };
const nobody: RouteAccess = { for: "nobody" };
const node: RouteAccess = { for: "node" };
const role = (operation: Operation): RouteAccess => ({ for: "role", operation });
const chat: RouteAccess = { for: "role", operation: "chat.use", others: 403 };
const readsChat: RouteAccess = { for: "role", operation: "chat.read", others: 403 };
const roleOrTheNode = (operation: Operation): RouteAccess => ({ for: "role", operation, orTheNode: true });

/** The platform host, sorted by path. */
export const PLATFORM_ROUTES: Readonly<Record<string, RouteAccess>> = {
  "GET /": page,
  "GET /.well-known/jwks.json": anybody,
  "GET /.well-known/oauth-authorization-server": anybody,
  "GET /.well-known/openid-configuration": anybody,
  "GET /account": page,
  "POST /account/name": page,
  "POST /account/password": page,
  "POST /account/providers/{provider}": page,
  "POST /account/providers/{provider}/disconnect": page,
  "POST /account/sessions": page,
  "GET /assets/{file}": anybody,
  "GET /consent": page,
  "POST /consent": page,
  "GET /device": page,
  "POST /device": page,
  "POST /device/decision": page,
  "GET /healthz": anybody,
  "GET /install.sh": anybody,
  "GET /invitations/{token}": anybody,
  "POST /invitations/{token}": anybody,
  "GET /metrics": { for: "platformAdmin", others: 404 },
  "GET /openapi.json": anybody,
  "GET /readyz": anybody,
  "GET /reset/{token}": anybody,
  "POST /reset/{token}": anybody,
  "GET /set-up/{token}": nobody,
  "POST /set-up/{token}": nobody,
  "GET /sign-in": anybody,
  "POST /sign-in": anybody,
  "GET /sign-in/{provider}/callback": anybody,
  "POST /sign-in/{provider}": anybody,
  "POST /sign-out": anybody,
  "GET /v1/agents": role("agent.read"),
  "POST /v1/agents": role("agent.create"),
  "DELETE /v1/agents/{id}": role("agent.delete"),
  "GET /v1/agents/{id}": role("agent.read"),
  "PATCH /v1/agents/{id}": role("agent.update"),
  "POST /v1/agents/{id}:start": role("agent.start"),
  "POST /v1/agents/{id}:stop": role("agent.stop"),
  "GET /v1/agents/{id}/config": role("agent.read"),
  "GET /v1/agents/{id}/connect": role("agent.connect"),
  "GET /v1/agents/{id}/events": role("agent.read"),
  "GET /v1/agents/{id}/limits": role("agent.read"),
  "PATCH /v1/agents/{id}/limits": role("agent.update"),
  "GET /v1/agents/{id}/logs": role("agent.logs"),
  "GET /v1/agents/{id}/secrets": role("agent.secrets"),
  "DELETE /v1/agents/{id}/secrets/{name}": role("agent.secrets"),
  "PUT /v1/agents/{id}/secrets/{name}": role("agent.secrets"),
  "GET /v1/audit": { for: "platformAdmin", others: 403 },
  "POST /v1/chat/completions": chat,
  "GET /v1/chat/history": readsChat,
  "POST /v1/chat/responses": chat,
  "GET /v1/chat/sessions": readsChat,
  "DELETE /v1/chat/sessions/{id}": chat,
  "DELETE /v1/chat/sessions/{id}/turns/{turnId}": chat,
  "GET /v1/chat/sessions/{id}": readsChat,
  "PATCH /v1/chat/sessions/{id}": chat,
  "GET /v1/chat/sessions/{id}/export": readsChat,
  "GET /v1/chat/sessions/{id}/messages": readsChat,
  "POST /v1/chat/sessions/{id}:regenerate": chat,
  "POST /v1/chat/sessions/{id}:stop": chat,
  "GET /v1/me": session,
  "PATCH /v1/me": session,
  "GET /v1/me/sessions": session,
  "DELETE /v1/me/sessions/{id}": session,
  "GET /v1/connectors": role("agent.read"),
  "GET /v1/daemon-builds": anybody,
  "GET /v1/daemon-builds/{file}": anybody,
  "GET /v1/daemon-version": { for: "platformAdmin", others: 403 },
  "PUT /v1/daemon-version": { for: "platformAdmin", others: 403 },
  "GET /v1/plans": session,
  "POST /v1/plans:refresh": session,
  "GET /v1/nodes": role("node.read"),
  "POST /v1/nodes": role("node.create"),
  "GET /v1/nodes:count-active": role("node.read"),
  "POST /v1/nodes:sweep": role("node.sweep"),
  "GET /v1/nodes/by-slug/{slug}": roleOrTheNode("node.read"),
  "GET /v1/nodes/{id}": roleOrTheNode("node.read"),
  "PATCH /v1/nodes/{id}": role("node.update"),
  "DELETE /v1/nodes/{id}": role("node.delete"),
  "POST /v1/nodes/{id}:drain": role("node.drain"),
  "POST /v1/nodes/{id}:restart-workload": role("node.restart"),
  "POST /v1/nodes/{id}:resume": role("node.resume"),
  "POST /v1/nodes/{id}/bootstrap-tokens": role("node.bootstrap"),
  "GET /v1/nodes/{id}/daemon-version": role("node.read"),
  "PUT /v1/nodes/{id}/daemon-version": role("node.update"),
  "GET /v1/nodes/{id}/engine-version": roleOrTheNode("node.read"),
  "POST /v1/nodes/{id}/enroll": { for: "bootstrap" },
  "GET /v1/nodes/{id}/events": role("node.read"),
  "GET /v1/nodes/{id}/logs": role("node.logs"),
  "POST /v1/nodes/{id}/identity-tokens": { for: "assertion" },
  "POST /v1/nodes/{id}/ready": node,
  "GET /v1/nodes/{id}/workload-connect": roleOrTheNode("node.connect"),
  "GET /v1/nodes/{id}/workload-version": roleOrTheNode("node.read"),
  "GET /v1/nodes/{node_id}/secrets": role("node.secrets"),
  "DELETE /v1/nodes/{node_id}/secrets/{name}": role("node.secrets"),
  "PUT /v1/nodes/{node_id}/secrets/{name}": role("node.secrets"),
  "GET /v1/oauth/authorize": page,
  "POST /v1/oauth/device/code": anybody,
  "POST /v1/oauth/revoke": anybody,
  "POST /v1/oauth/token": anybody,
  "GET /v1/projects": session,
  "POST /v1/projects": session,
  "GET /v1/projects/{id}": role("project.read"),
  "PATCH /v1/projects/{id}": role("project.update"),
  "DELETE /v1/projects/{id}": role("project.delete"),
  "GET /v1/projects/{id}/aliases": role("provider.read"),
  "DELETE /v1/projects/{id}/aliases/{name}": role("provider.manage"),
  "GET /v1/projects/{id}/aliases/{name}": role("provider.read"),
  "PUT /v1/projects/{id}/aliases/{name}": role("provider.manage"),
  "GET /v1/projects/{id}/audit": role("audit.read"),
  "GET /v1/projects/{id}/balance": { for: "role", operation: "billing.read", orPlatformAdmin: true },
  "POST /v1/projects/{id}/credits": { for: "platformAdmin", others: 403, strangers: 404 },
  "GET /v1/projects/{id}/daemon-version": role("node.read"),
  "PUT /v1/projects/{id}/daemon-version": role("node.update"),
  "GET /v1/projects/{id}/ledger": role("billing.ledger"),
  "GET /v1/projects/{id}/limits": { for: "role", operation: "project.read", orPlatformAdmin: true },
  "PATCH /v1/projects/{id}/limits": { for: "role", operation: "project.update", orPlatformAdmin: true },
  "GET /v1/projects/{id}/providers": role("provider.read"),
  "POST /v1/projects/{id}/providers": role("provider.manage"),
  "DELETE /v1/projects/{id}/providers/{name}": role("provider.manage"),
  "GET /v1/projects/{id}/providers/{name}": role("provider.read"),
  "PATCH /v1/projects/{id}/providers/{name}": role("provider.manage"),
  "POST /v1/projects/{id}/providers/{name}:check": role("provider.manage"),
  "GET /v1/projects/{id}/usage": role("usage.read"),
  "GET /v1/projects/{id}/usage/calls": role("usage.read"),
  "GET /v1/projects/{project_id}/invitations": role("invitation.list"),
  "DELETE /v1/projects/{project_id}/invitations/{id}": role("member.manage"),
  "GET /v1/projects/{project_id}/keys": role("key.list"),
  "POST /v1/projects/{project_id}/keys": role("key.create"),
  "DELETE /v1/projects/{project_id}/keys/{id}": role("key.manage"),
  "GET /v1/projects/{project_id}/keys/{id}": role("key.list"),
  "PATCH /v1/projects/{project_id}/keys/{id}": role("key.manage"),
  "POST /v1/projects/{project_id}/keys/{id}:rotate": role("key.manage"),
  "GET /v1/projects/{project_id}/members": role("member.list"),
  "POST /v1/projects/{project_id}/members": role("member.manage"),
  "DELETE /v1/projects/{project_id}/members/{user_id}": role("member.manage"),
  "PATCH /v1/projects/{project_id}/members/{user_id}": role("member.manage"),
};

/** Upgrades on the platform host, and calls of daemons over their link. */
export const DAEMON_ROUTES: Readonly<Record<string, RouteAccess>> = {
  "UPGRADE /v1/nodes/{id}/link": node,
  "UPGRADE /v1/nodes/{id}/tunnel": node,
  "LINK desiredState": node,
  "LINK events": node,
  "LINK heartbeat": node,
  "LINK goodbye": node,
  "LINK hello": node,
  "LINK observe": node,
  "LINK secret": node,
  "LINK workerToken": node,
};

/** The relay to nodes' workloads on the platform host: all methods and paths. */
export const RELAY_ROUTES: Readonly<Record<string, RouteAccess>> = {
  "GET /v1/nodes/{id}/gateway/{path}": { for: "connect" },
};

/** The inference host. */
export const INFERENCE_ROUTES: Readonly<Record<string, RouteAccess>> = {
  "GET /healthz": anybody,
  "GET /readyz": anybody,
  ...Object.fromEntries(
    DIALECTS.map((dialect) => [`POST /v1${DIALECT_SPECS[dialect].path}`, { for: "key", elsewhere: 404 } as const]),
  ),
  "GET /v1/models": { for: "key", elsewhere: "yes" },
  "GET /v1/models/{model}": { for: "key", elsewhere: 404 },
};

const ROLE_OF_CALLER: Readonly<Partial<Record<Caller, Role>>> = {
  viewer: "viewer",
  member: "member",
  admin: "admin",
  owner: "owner",
};

/** The outcome for this caller. */
export function outcomeFor(access: RouteAccess, caller: Caller): Outcome {
  switch (access.for) {
    case "anybody":
      return "yes";
    case "nobody":
      return 404;
    case "session":
      return hasSession(caller) ? "yes" : 401;
    case "page":
      return caller === "browser" ? "yes" : 303;
    case "role":
      return outcomeByRole(access, caller);
    case "node":
      return caller === "node" ? "yes" : caller === "otherNode" ? 404 : 401;
    case "platformAdmin":
      if (!hasSession(caller)) return 401;
      if (caller === "stranger") return access.strangers ?? access.others;
      return caller === "platformAdmin" ? "yes" : access.others;
    case "bootstrap":
      return caller === "bootstrap" ? "yes" : 401;
    case "assertion":
      return caller === "node" ? "yes" : 401;
    case "key":
      if (caller === "otherKey") return access.elsewhere;
      return caller === "key" || caller === "worker" ? "yes" : 401;
    case "connect":
      return caller === "connect" ? "yes" : 401;
  }
}

function outcomeByRole(access: RouteAccess & { readonly for: "role" }, caller: Caller): Outcome {
  const held = ROLE_OF_CALLER[caller];
  if (held !== undefined) return mayDo(held, access.operation) ? "yes" : 403;
  if (access.orPlatformAdmin && caller === "platformAdmin") return "yes";
  if (hasSession(caller)) return access.others ?? 404;
  if (access.orTheNode && caller === "node") return "yes";
  return access.orTheNode && caller === "otherNode" ? 404 : 401;
}

function hasSession(caller: Caller): boolean {
  return caller === "stranger" || caller === "platformAdmin" || ROLE_OF_CALLER[caller] !== undefined;
}
