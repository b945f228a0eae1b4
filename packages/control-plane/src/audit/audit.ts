import { rfc3339 } from "@fairlead/protocol/clock";
import type { AuditEvent } from "@fairlead/protocol/resources";
import { z } from "zod";
import type { CallOrigin, NodePrincipal, UserPrincipal } from "../auth/principal.ts";

/** The audit log: what is recorded, and how it is told. Pure. */

/** Every action that is recorded, and what it means. `docs/audit.md` is generated from here. */
export const AUDIT_ACTIONS = {
  "project.create": "A project was created.",
  "project.rename": "A project got another name.",
  "project.default_model": "A project got another default model.",
  "project.limits": "How much a project may call was changed.",
  "project.delete": "A project was deleted, with all that was in it.",
  "member.invite": "Somebody was invited into a project.",
  "member.join": "Somebody became a member by an invitation.",
  "member.update": "A member got another role.",
  "member.remove": "A member was removed.",
  "member.leave": "A member left by themselves.",
  "invitation.revoke": "An invitation was taken back.",
  "key.create": "A project key was created.",
  "key.update": "A project key's name, limits or expiry changed.",
  "key.disable": "A project key was disabled, by hand or because its maker left.",
  "key.rotate": "A project key got a new secret.",
  "key.delete": "A project key was deleted.",
  "node.create": "A node was created.",
  "node.update": "A node's fields, engine config or provider keys changed.",
  "node.delete": "A node was deleted and its identity revoked.",
  "machine.orphan": "A rented machine was found that no node has.",
  "machine.sweep": "Somebody compared rented machines with nodes, and may have removed those without one.",
  "node.drain": "A node was taken out of service.",
  "node.resume": "A node was put back into service.",
  "node.restart": "A node's engine was started anew.",
  "daemon.version": "Another daemon version was asked for: on a node, a project's nodes, or all.",
  "node.logs": "Somebody began to read what a node's engine prints.",
  "node.bootstrap": "A bootstrap token was issued for a node.",
  "node.connect": "Somebody got a way to a node's engine; what went through it is not recorded.",
  "node.enroll": "A daemon enrolled for a node.",
  "node.enroll_refused": "A second daemon tried a bootstrap token that was spent.",
  "node.secret.put": "A secret of a node was set.",
  "node.secret.delete": "A secret of a node was deleted.",
  "agent.create": "An agent was created.",
  "agent.update": "An agent's fields or config changed, or it was moved to another node.",
  "agent.limits": "What an agent may call and spend was changed.",
  "agent.start": "An agent was started.",
  "agent.stop": "An agent was stopped.",
  "agent.delete": "An agent was deleted.",
  "agent.logs": "Somebody began to read what an agent prints.",
  "agent.secret.put": "A secret of an agent was set.",
  "agent.secret.delete": "A secret of an agent was deleted.",
  "agent.connect": "Somebody got a way to an agent; what went through it is not recorded.",
  "billing.credit": "A platform administrator added credits to a project, or took some back.",
  "provider.create": "A project got a provider of its own.",
  "provider.update": "A provider's settings or credential changed.",
  "provider.delete": "A project's provider was deleted, its credential with it.",
  "alias.put": "An alias was made, or got other targets.",
  "alias.delete": "An alias was deleted.",
  "session.sign_in": "Somebody signed in.",
  "session.sign_in_failed": "A sign-in failed.",
  "session.sign_out": "Somebody signed out.",
  "session.revoke": "A sign-in session was ended from elsewhere.",
  "user.create": "A user was made.",
  "user.rename": "A user changed their name.",
  "user.link": "A user linked an account of an OIDC provider.",
  "user.unlink": "A user unlinked an account of an OIDC provider.",
  "user.password_change": "A user changed their password.",
  "user.password_reset": "A password was set by a one-time link.",
  "oauth.authorize": "A user let a program act for them.",
  "oauth.device_approve": "A user let a device act for them.",
  "oauth.device_deny": "A user refused a device.",
  "oauth.refresh_replayed": "A spent refresh token came again; its whole family was revoked.",
  "admin.token": "The operator issued a session token.",
  "admin.set_up_link": "A set-up link for the first administrator was made.",
  "admin.reset_link": "The operator made a link to set a user's password.",
  "admin.platform_admin": "The operator made a user a platform administrator.",
  "admin.rotate_signing_key": "The operator rotated the signing key.",
  "admin.backup": "The operator took a backup.",
  "admin.restore": "The operator restored a backup: a new epoch began, and every session ended.",
  "admin.rotate_master_key": "The operator sealed all secrets anew, by a new master key.",
  "admin.forget_sealed": "The operator gave up all that a lost master key had sealed.",
  "admin.log_level": "The operator changed what is logged, until the next start or for a while.",
} as const satisfies Record<string, string>;

export type AuditAction = keyof typeof AUDIT_ACTIONS;
export const AUDIT_ACTION_NAMES = Object.keys(AUDIT_ACTIONS) as AuditAction[];

/** Not a person with a session: the operator on the machine itself, or a part of the program on somebody's behalf. */
export interface SystemActor {
  readonly kind: "system";
  readonly name: "local_admin" | "sign_in" | "enrollment" | "provisioning" | "server";
  /** Where there was a call. */
  readonly origin?: CallOrigin;
  /** The person who did it, where the program knows them without a session yet: they are told as the actor. */
  readonly userId?: string;
}

/** Whoever administers from the server's own machine. */
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
  /** What people called it at the time. */
  readonly name?: string;
}

/** Never a secret, of whatever kind: names, ids and plain facts alone. */
export type AuditDetail = Readonly<Record<string, string | number | boolean | null>>;

/** What a service records. */
export interface AuditEntry {
  readonly actor: AuditActor;
  readonly action: AuditAction;
  /** Null for what belongs to no project; platform administrators alone see it. */
  readonly projectId: string | null;
  readonly resource: AuditResource;
  readonly detail?: AuditDetail;
}

/** What rests. */
export interface AuditEventRecord {
  readonly id: string;
  /** Unix milliseconds. */
  readonly at: number;
  readonly action: AuditAction;
  readonly actor: { readonly type: ActorType; readonly id: string; readonly email: string | null };
  readonly projectId: string | null;
  readonly resource: { readonly type: string; readonly id: string; readonly name: string };
  /** "" where there was no call. */
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

/** As the API tells it. */
export function toAuditEvent({ at, actor, ...record }: AuditEventRecord): AuditEvent {
  const { email, ...known } = actor;
  return { ...record, at: rfc3339(at), actor: email === null ? known : { ...known, email } };
}

/** Who it was, as it rests. */
export function actorOf(actor: AuditActor): { readonly type: ActorType; readonly id: string } {
  if (actor.kind === "user") return { type: "user", id: actor.userId };
  if (actor.kind === "node") return { type: "node", id: actor.nodeId };
  return actor.userId === undefined ? { type: "system", id: actor.name } : { type: "user", id: actor.userId };
}

const MAX_TEXT = 256;
const MAX_DETAIL_TEXT = 1024;
/** Our credentials and anybody's signed tokens, as far as their form tells: people paste them into names and search fields. */
const CREDENTIAL = /\b(?:fl[kbi]_|eyJ)[\w.~+/=-]{16,}/g;

/** A text from outside as the log may keep it: no credential, no NUL (which PostgreSQL cannot store), bounded. */
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
