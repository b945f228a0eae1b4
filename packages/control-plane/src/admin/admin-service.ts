import { rfc3339 } from "@fairlead/protocol/clock";
import { z } from "zod";
import { emailSchema, userNameSchema } from "../users/user.ts";
import type { UserService } from "../users/user-service.ts";

/** What the operator may do from the machine itself, without a session: first sign-in and emergencies (design §5). */

export const createUserSchema = z.strictObject({
  email: emailSchema,
  name: userNameSchema,
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

export type CreateUserInput = z.input<typeof createUserSchema>;
export type CreateUserAnswer = z.infer<typeof createUserAnswerSchema>;
export type CreateTokenInput = z.input<typeof createTokenSchema>;
export type CreateTokenAnswer = z.infer<typeof createTokenAnswerSchema>;

export class AdminService {
  readonly #users: UserService;

  constructor(users: UserService) {
    this.#users = users;
  }

  /** @param input parsed by `createUserSchema`. */
  async createUser(input: z.output<typeof createUserSchema>): Promise<CreateUserAnswer> {
    const { user, created } = await this.#users.ensure(input);
    const { id, email, name, platformAdmin } = user;
    return { user: { id, email, name, platformAdmin }, created };
  }

  /** @param input parsed by `createTokenSchema`. @throws DomainError not_found, invalid_request */
  async createToken(input: z.output<typeof createTokenSchema>): Promise<CreateTokenAnswer> {
    const { token, expiresAt } = await this.#users.openSession(input);
    return { token, expiresAt: rfc3339(expiresAt) };
  }
}
