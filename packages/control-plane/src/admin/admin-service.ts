import { rfc3339 } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import { nameSchema } from "@fairlead/protocol/text";
import type { Kysely } from "kysely";
import { z } from "zod";
import { OPERATOR, type SystemActor } from "../audit/audit.ts";
import type { AuditService } from "../audit/audit-service.ts";
import type { KeyRing } from "../auth/key-ring.ts";
import type { Database } from "../db/schema.ts";
import { linkUrl } from "../one-time-links/one-time-link.ts";
import type { CreateLink, OneTimeLinkService } from "../one-time-links/one-time-link-service.ts";
import { emailSchema } from "../users/user.ts";
import type { UserService } from "../users/user-service.ts";

/** What the operator may do from the machine itself, without a session: first sign-in and emergencies (design §5). */

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

/** How long the links live that the operator makes. */
const RESET_LINK_MS = 3_600_000;
const SET_UP_LINK_MS = 24 * 3_600_000;

export interface AdminServiceDeps {
  readonly db: Kysely<Database>;
  readonly users: UserService;
  readonly oneTimeLinks: OneTimeLinkService;
  readonly audit: AuditService;
  readonly keyRing: KeyRing;
  /** Of the platform host: links lead there. */
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
   * A link by which a user sets a new password. It voids an earlier one, and ends no session until it is used.
   * @param input parsed by `resetLinkSchema`. @throws DomainError not_found
   */
  async resetLink({ email }: z.output<typeof resetLinkSchema>): Promise<LinkAnswer> {
    const { db, users, audit } = this.#deps;
    const user = await users.findByEmail(email);
    if (!user) throw new DomainError("not_found", `There is no user with the e-mail address ${email}.`);
    return db.transaction().execute(async (transaction) => {
      const resource = { type: "user", id: user.id, name: email } as const;
      await audit.record(transaction, { actor: OPERATOR, action: "admin.reset_link", projectId: null, resource });
      return this.#link(transaction, { ...NOBODY, purpose: "reset", userId: user.id, lifeMs: RESET_LINK_MS });
    });
  }

  /** The link by which the first person makes their account. It voids an earlier one. @throws DomainError already_exists */
  async setUpLink(maker: SystemActor["name"] = OPERATOR.name): Promise<LinkAnswer> {
    const { db, users, audit } = this.#deps;
    if (await users.hasAny()) {
      const advice = "Make further administrators with `fairlead admin create-user --platform-admin`.";
      throw new DomainError("already_exists", `This installation is set up: it has users. ${advice}`);
    }
    return db.transaction().execute(async (transaction) => {
      const resource = { type: "user", id: "" } as const;
      const actor: SystemActor = { kind: "system", name: maker };
      await audit.record(transaction, { actor, action: "admin.set_up_link", projectId: null, resource });
      return this.#link(transaction, { ...NOBODY, purpose: "set_up", lifeMs: SET_UP_LINK_MS });
    });
  }

  /**
   * Signs with a new key from now on; what the one before signed is good until it has run out, unless that is to be forgotten.
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
