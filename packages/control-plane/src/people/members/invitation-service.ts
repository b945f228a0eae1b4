import { DomainError } from "@fairlead/protocol/errors";
import type { Role } from "@fairlead/protocol/resources";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { AuditActor, AuditEntry } from "../../access/audit/audit.ts";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { ProjectAccess } from "../../access/auth/access.ts";
import type { CallOrigin, UserPrincipal } from "../../access/auth/principal.ts";
import { always, type Once } from "../../access/idempotency/once.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import { linkUrl, maskedEmail, type OneTimeLinkRecord } from "../one-time-links/one-time-link.ts";
import { type OneTimeLinkService, voidLink } from "../one-time-links/one-time-link-service.ts";
import { higherRole, INVITATION_LIFE_MS, type InvitationRecord, mayGive } from "./member.ts";
import { MemberStore } from "./member-store.ts";

export interface InvitationServiceDeps {
  readonly db: Kysely<Database>;
  readonly access: ProjectAccess;
  readonly links: OneTimeLinkService;
  readonly audit: AuditService;
  readonly clock: Clock;
  /** URL of the platform host, for links. */
  readonly publicUrl: string;
}

/** `url` is the invitation link, returned only here. */
export interface CreatedInvitation {
  readonly invitation: InvitationRecord;
  readonly url: string;
}

/** Invitations: single-use links for the owner of an email address. */
export class InvitationService {
  readonly #deps: InvitationServiceDeps;

  constructor(deps: InvitationServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Replaces an earlier invitation of the same address.
   * @param input its email address in lowercase. @throws DomainError not_found, permission_denied, already_exists, project_deleting
   */
  async create(
    caller: UserPrincipal,
    input: { readonly projectId: string; readonly email: string; readonly role: Role },
    once: Once<CreatedInvitation> = always,
  ): Promise<CreatedInvitation> {
    const { db, access } = this.#deps;
    const call = { caller, projectId: input.projectId, operation: "member.manage" } as const;
    await access.require(caller, input.projectId, "member.manage");
    return db.transaction().execute(async (transaction) => {
      requireGift(await access.requireWithin(transaction, call), input.role);
      return once(transaction, () => this.#create(transaction, caller, input));
    });
  }

  /** Open invitations, oldest first. `page.after` is an invitation's id. @throws DomainError not_found, permission_denied */
  async list(
    caller: UserPrincipal,
    projectId: string,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly InvitationRecord[]> {
    await this.#deps.access.require(caller, projectId, "invitation.list");
    return (await this.#deps.links.listOpen(projectId, page)).map(toRecord);
  }

  /** @throws DomainError not_found, permission_denied, project_deleting */
  async revoke(
    caller: UserPrincipal,
    { projectId, id }: { readonly projectId: string; readonly id: string },
  ): Promise<void> {
    const { db, access, links } = this.#deps;
    await access.require(caller, projectId, "member.manage");
    await db.transaction().execute(async (transaction) => {
      const call = { caller, projectId, operation: "member.manage" } as const;
      const role = await access.requireWithin(transaction, call);
      const invitation = toRecord(await links.revoke(transaction, projectId, id));
      requireGift(role, invitation.role);
      await this.#record(transaction, invitation, { actor: caller, action: "invitation.revoke" });
    });
  }

  /**
   * Uses the link and adds its user. An existing member never gets a lower role. Idempotent.
   * @throws DomainError not_found for an invalid link; permission_denied for another user
   */
  async acceptInvitation(
    user: { readonly userId: string; readonly email: string },
    token: string,
    origin: CallOrigin,
  ): Promise<{ readonly projectId: string }> {
    const { db, links } = this.#deps;
    const invitation = await this.#find(token);
    if (invitation.email !== user.email) {
      throw new DomainError(
        "permission_denied",
        `This invitation is for ${maskedEmail(invitation.email)}. Sign in with that address.`,
      );
    }
    const { projectId } = invitation;
    await db.transaction().execute(async (transaction) => {
      const members = new MemberStore(transaction);
      const project = await members.holdProject(projectId);
      if (!project || project.deleting) throw voidLink();
      const current = await members.membershipOf(projectId, user.userId);
      try {
        await links.spend(transaction, token, user.userId);
      } catch (error) {
        // A second click; the first one added the user.
        if (current && error instanceof DomainError && error.code === "not_found") return;
        throw error;
      }
      await this.#join(transaction, { invitation, userId: user.userId, held: current?.role ?? null });
      const actor = { kind: "system", name: "sign_in", origin, userId: user.userId } as const;
      await this.#recordJoin(transaction, invitation, actor);
    });
    return { projectId };
  }

  async #create(
    transaction: Kysely<Database>,
    caller: UserPrincipal,
    { projectId, email, role }: { readonly projectId: string; readonly email: string; readonly role: Role },
  ): Promise<CreatedInvitation> {
    const { links, publicUrl } = this.#deps;
    const member = await new MemberStore(transaction).findByEmail(projectId, email);
    if (member) {
      throw new DomainError("already_exists", `${email} is already a member of this project, as ${member.role}.`, {
        param: "email",
      });
    }
    const { link, token } = await links.create(transaction, {
      purpose: "invitation",
      email,
      userId: null,
      projectId,
      role,
      createdBy: caller.userId,
      lifeMs: INVITATION_LIFE_MS,
    });
    const invitation = toRecord(link);
    const detail = { role };
    await this.#record(transaction, invitation, { actor: caller, action: "member.invite", detail });
    return { invitation, url: linkUrl(publicUrl, "invitation", token) };
  }

  async #find(token: string): Promise<InvitationRecord> {
    const link = await this.#deps.links.find(token);
    if (link?.purpose !== "invitation") throw voidLink();
    return toRecord(link);
  }

  async #join(
    transaction: Kysely<Database>,
    join: { readonly invitation: InvitationRecord; readonly userId: string; readonly held: Role | null },
  ): Promise<void> {
    const members = new MemberStore(transaction);
    const { invitation, userId, held } = join;
    const { projectId, role } = invitation;
    if (held !== null) await members.setRole(projectId, userId, higherRole(held, role));
    else await members.insert({ projectId, userId, role, createdAt: this.#deps.clock.now() });
  }

  async #recordJoin(
    transaction: Kysely<Database>,
    { id, projectId, email, role }: InvitationRecord,
    actor: AuditActor & { readonly userId: string },
  ): Promise<void> {
    const resource = { type: "member", id: actor.userId, name: email } as const;
    const detail = { role, invitationId: id };
    await this.#deps.audit.record(transaction, { actor, action: "member.join", projectId, resource, detail });
  }

  async #record(
    transaction: Kysely<Database>,
    { id, projectId, email }: InvitationRecord,
    entry: Pick<AuditEntry, "actor" | "action" | "detail">,
  ): Promise<void> {
    const resource = { type: "invitation", id, name: email } as const;
    await this.#deps.audit.record(transaction, { ...entry, projectId, resource });
  }
}

function requireGift(role: Role, given: Role): void {
  if (mayGive(role, given)) return;
  throw new DomainError(
    "permission_denied",
    `Your role in this project is ${role}. Only an owner can invite an ${given}.`,
    {
      param: "role",
    },
  );
}

function toRecord({ id, projectId, email, role, createdAt, expiresAt }: OneTimeLinkRecord): InvitationRecord {
  if (projectId === null || email === null || role === null) throw new Error(`the invitation ${id} has no subject`);
  return { id, projectId, email, role, createdAt, expiresAt };
}
