import { DomainError } from "@fairlead/protocol/errors";
import type { Role } from "@fairlead/protocol/resources";
import type { Kysely } from "kysely";
import type { AuditEntry } from "../../access/audit/audit.ts";
import type { AuditService } from "../../access/audit/audit-service.ts";
import { mayDo, type ProjectAccess } from "../../access/auth/access.ts";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import type { KeyService } from "../../access/keys/key-service.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { OneTimeLinkService } from "../one-time-links/one-time-link-service.ts";
import { type MemberRecord, type MemberRefusal, memberRefusalOf, rolesBeyond } from "./member.ts";
import { MemberStore } from "./member-store.ts";

export interface MemberServiceDeps {
  readonly db: Kysely<Database>;
  readonly access: ProjectAccess;
  readonly keys: Pick<KeyService, "disableKeysOf" | "forget">;
  readonly links: OneTimeLinkService;
  readonly audit: AuditService;
}

interface MemberName {
  readonly projectId: string;
  readonly userId: string;
}

/** Side effects of a change. */
interface Ended {
  readonly keyIds: readonly string[];
  readonly detail: { readonly keysDisabled: number; readonly invitationsRevoked: number };
}

/** Project members: roles and leaving. Everything that a role granted ends with it, in the same transaction. */
export class MemberService {
  readonly #deps: MemberServiceDeps;
  readonly #members: MemberStore;

  constructor(deps: MemberServiceDeps) {
    this.#deps = deps;
    this.#members = new MemberStore(deps.db);
  }

  /** `page.after` is a user's id. @throws DomainError not_found */
  async list(
    caller: UserPrincipal,
    projectId: string,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly MemberRecord[]> {
    await this.#deps.access.require(caller, projectId, "member.list");
    return this.#members.list(projectId, page);
  }

  /** @throws DomainError not_found, permission_denied, last_owner, project_deleting */
  async update(caller: UserPrincipal, { role, ...name }: MemberName & { readonly role: Role }): Promise<MemberRecord> {
    const call = { caller, projectId: name.projectId, operation: "member.manage" } as const;
    await this.#deps.access.require(caller, name.projectId, "member.manage");
    return this.#change(async (transaction) => {
      const by = await this.#deps.access.requireWithin(transaction, call);
      const member = await judged(transaction, name, { by, to: role, self: caller.userId === name.userId });
      if (member.role === role) return { member, keyIds: [] };
      await new MemberStore(transaction).setRole(name.projectId, name.userId, role);
      const { keyIds, detail } = await this.#end(transaction, { caller, name, to: role });
      await this.#record(transaction, member, {
        actor: caller,
        action: "member.update",
        detail: { before: member.role, after: role, ...detail },
      });
      return { member: { ...member, role }, keyIds };
    });
  }

  /** Removes a member, or leaves. @throws DomainError not_found, permission_denied, last_owner, project_deleting */
  async remove(caller: UserPrincipal, name: MemberName): Promise<void> {
    const self = caller.userId === name.userId;
    // Every member may leave.
    const operation = self ? "member.list" : "member.manage";
    await this.#deps.access.require(caller, name.projectId, operation);
    await this.#change(async (transaction) => {
      const by = await this.#deps.access.requireWithin(transaction, { caller, projectId: name.projectId, operation });
      const member = await judged(transaction, name, { by, to: null, self });
      await new MemberStore(transaction).delete(name.projectId, name.userId);
      const { keyIds, detail } = await this.#end(transaction, { caller, name, to: null });
      const action = self ? "member.leave" : "member.remove";
      await this.#record(transaction, member, { actor: caller, action, detail: { role: member.role, ...detail } });
      return { member, keyIds };
    });
  }

  async #change(
    work: (
      transaction: Kysely<Database>,
    ) => Promise<{ readonly member: MemberRecord; readonly keyIds: readonly string[] }>,
  ): Promise<MemberRecord> {
    const { member, keyIds } = await this.#deps.db.transaction().execute(work);
    this.#deps.keys.forget(keyIds);
    return member;
  }

  /** Disables keys and revokes invitations that the new role could not create. */
  async #end(
    transaction: Kysely<Database>,
    { caller, name, to }: { readonly caller: UserPrincipal; readonly name: MemberName; readonly to: Role | null },
  ): Promise<Ended> {
    const { keys, links, audit } = this.#deps;
    const { projectId, userId } = name;
    const keepsKeys = to !== null && mayDo(to, "key.create");
    const keyIds = keepsKeys ? [] : await keys.disableKeysOf(transaction, projectId, userId);
    const roles = to === null ? null : rolesBeyond(to);
    const revoked = await links.revokeMadeBy(transaction, { projectId, createdBy: userId, roles });
    const because = { because: to === null ? "member.remove" : "member.update", userId };
    for (const id of keyIds) {
      const resource = { type: "key", id } as const;
      await audit.record(transaction, { actor: caller, action: "key.disable", projectId, resource, detail: because });
    }
    for (const { id, email } of revoked) {
      const resource = { type: "invitation", id, name: email ?? "" } as const;
      await audit.record(transaction, {
        actor: caller,
        action: "invitation.revoke",
        projectId,
        resource,
        detail: because,
      });
    }
    return { keyIds, detail: { keysDisabled: keyIds.length, invitationsRevoked: revoked.length } };
  }

  async #record(
    transaction: Kysely<Database>,
    { projectId, userId, email }: MemberRecord,
    entry: Pick<AuditEntry, "actor" | "action" | "detail">,
  ): Promise<void> {
    await this.#deps.audit.record(transaction, {
      ...entry,
      projectId,
      resource: { type: "member", id: userId, name: email },
    });
  }
}

/** The member, if the change is allowed. The caller holds the project's lock. */
async function judged(
  transaction: Kysely<Database>,
  { projectId, userId }: MemberName,
  change: { readonly by: Role; readonly to: Role | null; readonly self: boolean },
): Promise<MemberRecord> {
  const members = new MemberStore(transaction);
  const member = await members.find(projectId, userId);
  if (!member) throw new DomainError("not_found", "This project has no such member.");
  const owners = await members.countOwners(projectId);
  refuse(memberRefusalOf({ ...change, from: member.role, owners }));
  return member;
}

function refuse(refusal: MemberRefusal): void {
  if (refusal === "permission_denied") {
    throw new DomainError("permission_denied", "Only an owner can change, remove or appoint owners.");
  }
  if (refusal === "last_owner") {
    throw new DomainError(
      "last_owner",
      "This is the project's last owner. Make another member an owner first, or delete the project.",
    );
  }
}
