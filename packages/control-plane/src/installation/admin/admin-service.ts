import { DomainError } from "@fairlead/protocol/errors";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import { nameSchema } from "@fairlead/protocol/values/text";
import type { Kysely } from "kysely";
import { z } from "zod";
import { OPERATOR, type SystemActor } from "../../access/audit/audit.ts";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { KeyRing } from "../../access/auth/sealing/key-ring.ts";
import { linkUrl } from "../../people/one-time-links/one-time-link.ts";
import type { CreateLink, OneTimeLinkService } from "../../people/one-time-links/one-time-link-service.ts";
import { emailSchema } from "../../people/users/user.ts";
import type { UserService } from "../../people/users/user-service.ts";
import type { Database } from "../db/tables/schema.ts";

/** Operations that the operator can run on the machine itself, without a session: first sign-in and emergencies. */

export const createUserSchema = z.strictObject({
  email: emailSchema,
  name: nameSchema,
  platformAdmin: z.boolean(),
});
export const createUserAnswerSchema = z.object({
  user: z.object({ id: z.string(), email: z.string(), name: z.string(), platformAdmin: z.boolean() }),
  created: z.boolean(),
});

const DEFAULT_TTL_SECONDS = 12 * 3600;
export const createTokenSchema = z.strictObject({
  email: emailSchema,
  ttlSeconds: z.number().int().default(DEFAULT_TTL_SECONDS),
});
export const createTokenAnswerSchema = z.object({ token: z.string(), expiresAt: z.string() });

export const resetLinkSchema = z.strictObject({ email: emailSchema });
export const noInputSchema = z.strictObject({});
export const linkAnswerSchema = z.object({ url: z.string(), expiresAt: z.string() });
export const rotateSigningKeySchema = z.strictObject({ forgetFormer: z.boolean().default(false) });
export const rotateSigningKeyAnswerSchema = z.object({ keyId: z.string() });

export type CreateUserInput = z.input<typeof createUserSchema>;
export type CreateUserAnswer = z.infer<typeof createUserAnswerSchema>;
export type CreateTokenInput = z.input<typeof createTokenSchema>;
export type CreateTokenAnswer = z.infer<typeof createTokenAnswerSchema>;
export type ResetLinkInput = z.input<typeof resetLinkSchema>;
export type LinkAnswer = z.infer<typeof linkAnswerSchema>;
export type RotateSigningKeyInput = z.input<typeof rotateSigningKeySchema>;
export type RotateSigningKeyAnswer = z.infer<typeof rotateSigningKeyAnswerSchema>;

/** Lifetime of links created by the operator. */
const RESET_LINK_MS = 3_600_000;
const SET_UP_LINK_MS = 24 * 3_600_000;

export interface AdminServiceDeps {
  readonly db: Kysely<Database>;
  readonly users: UserService;
  readonly oneTimeLinks: OneTimeLinkService;
  readonly audit: AuditService;
  readonly keyRing: KeyRing;
  /** URL of the platform host, for links. */
  readonly publicUrl: string;
}

export class AdminService {
  readonly #deps: AdminServiceDeps;

  constructor(deps: AdminServiceDeps) {
    this.#deps = deps;
  }

  /** @param input parsed by `createUserSchema`. */
  async createUser(input: z.output<typeof createUserSchema>): Promise<CreateUserAnswer> {
    const { user, created } = await this.#deps.users.ensure({ ...input, actor: OPERATOR });
    const { id, email, name, platformAdmin } = user;
    return { user: { id, email, name, platformAdmin }, created };
  }

  /** @param input parsed by `createTokenSchema`. @throws DomainError not_found, invalid_request */
  async createToken(input: z.output<typeof createTokenSchema>): Promise<CreateTokenAnswer> {
    const { token, expiresAt } = await this.#deps.users.openSession({ ...input, actor: OPERATOR });
    return { token, expiresAt: rfc3339(expiresAt) };
  }

  /**
   * Creates a password reset link. It replaces an earlier one; sessions end only when it is used.
   * @param input parsed by `resetLinkSchema`. @throws DomainError not_found
   */
  async resetLink({ email }: z.output<typeof resetLinkSchema>): Promise<LinkAnswer> {
    const { db, users, audit } = this.#deps;
    const user = await users.findByEmail(email);
    if (!user) throw new DomainError("not_found", `There is no user with the email address ${email}.`);
    return db.transaction().execute(async (transaction) => {
      const resource = { type: "user", id: user.id, name: email } as const;
      await audit.record(transaction, { actor: OPERATOR, action: "admin.reset_link", projectId: null, resource });
      return this.#link(transaction, { ...NOBODY, purpose: "reset", userId: user.id, lifeMs: RESET_LINK_MS });
    });
  }

  /** Creates the setup link of the first administrator. It replaces an earlier one. @throws DomainError already_exists */
  async setUpLink(maker: SystemActor["name"] = OPERATOR.name): Promise<LinkAnswer> {
    const { db, users, audit } = this.#deps;
    if (await users.hasAny()) {
      const advice = "To create further administrators, run `fairlead admin create-user --platform-admin`.";
      throw new DomainError("already_exists", `This installation is already set up. ${advice}`);
    }
    return db.transaction().execute(async (transaction) => {
      const resource = { type: "user", id: "" } as const;
      const actor: SystemActor = { kind: "system", name: maker };
      await audit.record(transaction, { actor, action: "admin.set_up_link", projectId: null, resource });
      return this.#link(transaction, { ...NOBODY, purpose: "set_up", lifeMs: SET_UP_LINK_MS });
    });
  }

  /**
   * Signs with a new key. Tokens of the previous key stay valid until they expire, unless `input` says to revoke them.
   * @param input parsed by `rotateSigningKeySchema`. @returns the new key's id.
   */
  async rotateSigningKey({ forgetFormer }: z.output<typeof rotateSigningKeySchema>): Promise<RotateSigningKeyAnswer> {
    const { keyRing, audit } = this.#deps;
    const alongside = async (transaction: Kysely<Database>, id: string): Promise<void> => {
      const resource = { type: "signing_key", id } as const;
      const action = "admin.rotate_signing_key";
      const detail = { forgetFormer };
      await audit.record(transaction, { actor: OPERATOR, action, projectId: null, resource, detail });
    };
    const keyId = await keyRing.rotate({ alongside, forgetFormer });
    return { keyId };
  }

  async #link(transaction: Kysely<Database>, input: CreateLink): Promise<LinkAnswer> {
    const { oneTimeLinks, publicUrl } = this.#deps;
    const { link, token } = await oneTimeLinks.create(transaction, input);
    return { url: linkUrl(publicUrl, input.purpose, token), expiresAt: rfc3339(link.expiresAt) };
  }
}

const NOBODY = { email: null, userId: null, projectId: null, role: null, createdBy: null } as const;
