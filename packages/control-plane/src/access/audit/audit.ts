import type { AuditEvent } from "@fairlead/protocol/resources";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import { z } from "zod";
import type { CallOrigin, NodePrincipal, UserPrincipal } from "../auth/principal.ts";

/** The audit log: actions and how they are recorded. Pure. */

/** All recorded actions. `docs/audit.md` is generated from here. */
export const AUDIT_ACTIONS = {
  "project.create": "A project was created.",
  "project.rename": "A project was renamed.",
  "project.default_model": "A project's default model changed.",
  "project.limits": "A project's limits changed.",
  "project.delete": "A project and everything in it was deleted.",
  "member.invite": "A user was invited to a project.",
  "member.join": "A user accepted an invitation and became a member.",
  "member.update": "A member's role changed.",
  "member.remove": "A member was removed.",
  "member.leave": "A member left the project.",
  "invitation.revoke": "An invitation was revoked.",
  "key.create": "A project key was created.",
  "key.update": "A project key's name, limits or expiry changed.",
  "key.disable": "A project key was disabled, by a user or because its creator left.",
  "key.rotate": "A project key was rotated.",
  "key.delete": "A project key was deleted.",
  "node.create": "A node was created.",
  "node.update": "A node's fields, engine config or provider keys were changed.",
  "node.delete": "A node was deleted and its identity revoked.",
  "machine.orphan": "A rented machine without a node was found.",
  "machine.sweep": "A user compared rented machines with nodes, and may have removed machines without one.",
  "node.drain": "A node was taken out of service.",
  "node.resume": "A node was put back into service.",
  "node.restart": "A node's engine was restarted.",
  "daemon.version": "The daemon version was changed for a node, a project's nodes, or all nodes.",
  "node.logs": "A user started reading the logs of a node's engine.",
  "node.bootstrap": "A bootstrap token was issued for a node.",
  "node.connect": "A user requested access to a node's engine. Requests to the engine are not recorded.",
  "node.enroll": "A daemon enrolled for a node.",
  "node.enroll_refused": "A second daemon tried to use a bootstrap token.",
  "node.secret.put": "A secret of a node was set.",
  "node.secret.delete": "A secret of a node was deleted.",
  "agent.create": "An agent was created.",
  "agent.update": "An agent's fields or config changed, or it was moved to another node.",
  "agent.limits": "An agent's limits changed.",
  "agent.start": "An agent was started.",
  "agent.stop": "An agent was stopped.",
  "agent.delete": "An agent was deleted.",
  "agent.logs": "A user started reading an agent's logs.",
  "agent.secret.put": "A secret of an agent was set.",
  "agent.secret.delete": "A secret of an agent was deleted.",
  "agent.connect": "A user requested access to an agent. Requests to the agent are not recorded.",
  "billing.credit": "A platform administrator added credits to a project, or removed some.",
  "provider.create": "A provider was added to a project.",
  "provider.update": "A provider's settings or credential changed.",
  "provider.delete": "A project's provider and its credential were deleted.",
  "alias.put": "An alias was created, or its targets changed.",
  "alias.delete": "An alias was deleted.",
  "session.sign_in": "A user signed in.",
  "session.sign_in_failed": "A sign-in failed.",
  "session.sign_out": "A user signed out.",
  "session.revoke": "A sign-in session was revoked from another session.",
  "user.create": "A user was created.",
  "user.rename": "A user changed their name.",
  "user.link": "A user linked an account of an OIDC provider.",
  "user.unlink": "A user unlinked an account of an OIDC provider.",
  "user.password_change": "A user changed their password.",
  "user.password_reset": "A user set a password with a one-time link.",
  "oauth.authorize": "A user allowed a program to act for them.",
  "oauth.device_approve": "A user allowed a device to act for them.",
  "oauth.device_deny": "A user denied access to a device.",
  "oauth.code_replayed": "An authorization code was used twice; the session from the first use was revoked.",
  "oauth.refresh_replayed": "A refresh token was used twice; its session was revoked.",
  "admin.token": "The operator issued a session token.",
  "admin.set_up_link": "A setup link for the first administrator was created.",
  "admin.reset_link": "The operator created a link to set a user's password.",
  "admin.platform_admin": "The operator made a user a platform administrator.",
  "admin.rotate_signing_key": "The operator rotated the signing key.",
  "admin.backup": "The operator created a backup.",
  "admin.restore": "The operator restored a backup: a new epoch began, and every session ended.",
  "admin.rotate_master_key": "The operator rotated the master key and re-encrypted all secrets.",
  "admin.forget_sealed": "The operator discarded everything encrypted with a lost master key.",
  "admin.log_level": "The operator changed the log level, until the next start or for a limited time.",
} as const satisfies Record<string, string>;

export type AuditAction = keyof typeof AUDIT_ACTIONS;
export const AUDIT_ACTION_NAMES = Object.keys(AUDIT_ACTIONS) as AuditAction[];

/** Not a user with a session: the operator on the machine, or a component acting for someone. */
export interface SystemActor {
  readonly kind: "system";
  readonly name: "local_admin" | "sign_in" | "enrollment" | "provisioning" | "server";
  /** Set if there was a request. */
  readonly origin?: CallOrigin;
  /** The user, if known without a session yet. Recorded as the actor. */
  readonly userId?: string;
}

/** The operator on the server's machine. */
export const OPERATOR: SystemActor = { kind: "system", name: "local_admin" };

export type AuditActor = UserPrincipal | NodePrincipal | SystemActor;

export interface AuditResource {
  readonly type:
    | "project"
    | "member"
    | "invitation"
    | "key"
    | "node"
    | "agent"
    | "machine"
    | "secret"
    | "provider"
    | "alias"
    | "user"
    | "session"
    | "signing_key"
    | "installation";
  readonly id: string;
  /** The resource's name at that time. */
  readonly name?: string;
}

/** Only names, ids and plain facts, never a secret. */
export type AuditDetail = Readonly<Record<string, string | number | boolean | null>>;

/** The input of `record`. */
export interface AuditEntry {
  readonly actor: AuditActor;
  readonly action: AuditAction;
  /** Null for events outside projects, which only platform administrators see. */
  readonly projectId: string | null;
  readonly resource: AuditResource;
  readonly detail?: AuditDetail;
}

/** The stored form. */
export interface AuditEventRecord {
  readonly id: string;
  /** Unix milliseconds. */
  readonly at: number;
  readonly action: AuditAction;
  readonly actor: { readonly type: ActorType; readonly id: string; readonly email: string | null };
  readonly projectId: string | null;
  readonly resource: { readonly type: string; readonly id: string; readonly name: string };
  /** "" if there was no request. */
  readonly address: string;
  readonly requestId: string;
  readonly detail: AuditDetail;
}

export const actorTypeSchema = z.enum(["user", "node", "system"]);
type ActorType = z.infer<typeof actorTypeSchema>;

export const auditActionSchema = z.enum(AUDIT_ACTION_NAMES);
export const auditDetailSchema = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean(), z.null()]),
) satisfies z.ZodType<AuditDetail>;

/** The API form. */
export function toAuditEvent({ at, actor, ...record }: AuditEventRecord): AuditEvent {
  const { email, ...known } = actor;
  return { ...record, at: rfc3339(at), actor: email === null ? known : { ...known, email } };
}

/** The actor in the stored form. */
export function actorOf(actor: AuditActor): { readonly type: ActorType; readonly id: string } {
  if (actor.kind === "user") return { type: "user", id: actor.userId };
  if (actor.kind === "node") return { type: "node", id: actor.nodeId };
  return actor.userId === undefined ? { type: "system", id: actor.name } : { type: "user", id: actor.userId };
}

const MAX_TEXT = 256;
const MAX_DETAIL_TEXT = 1024;
/** Matches our credentials and any signed token: users paste them into names and search fields. */
const CREDENTIAL = /\b(?:fl[kbi]_|eyJ)[\w.~+/=-]{16,}/g;

/** External text as the log may store it: without credentials and NUL (which PostgreSQL rejects), and bounded. */
export function auditText(text: string, maxLength: number = MAX_TEXT): string {
  const clean = text.replaceAll("\0", "").replaceAll(CREDENTIAL, "[credential]");
  return clean.length <= maxLength ? clean : `${clean.slice(0, maxLength - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

export function auditDetail(detail: AuditDetail): AuditDetail {
  return Object.fromEntries(
    Object.entries(detail).map(([name, value]) => [
      auditText(name),
      typeof value === "string" ? auditText(value, MAX_DETAIL_TEXT) : value,
    ]),
  );
}
