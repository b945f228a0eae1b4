import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import type { Database } from "../../installation/db/tables/schema.ts";
import { hashLinkToken, isLinkToken, isOpenLink, makeLinkToken, type OneTimeLinkRecord } from "./one-time-link.ts";
import { type MadeBy, OneTimeLinkStore } from "./one-time-link-store.ts";

export interface OneTimeLinkServiceDeps {
  readonly db: Kysely<Database>;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly randomBytes: (n: number) => Uint8Array;
}

export interface CreateLink
  extends Pick<OneTimeLinkRecord, "purpose" | "email" | "userId" | "projectId" | "role" | "createdBy"> {
  /** Milliseconds. */
  readonly lifeMs: number;
}

/** Setup, reset and invitation links: returned once, used once. Callers check permissions. */
export class OneTimeLinkService {
  readonly #deps: OneTimeLinkServiceDeps;

  constructor(deps: OneTimeLinkServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Creates a link; an earlier one for the same purpose, user, project and email address becomes invalid.
   * @returns also the token, which is not stored.
   */
  async create(
    transaction: Kysely<Database>,
    input: CreateLink,
  ): Promise<{ readonly link: OneTimeLinkRecord; readonly token: string }> {
    const { clock, ids, randomBytes } = this.#deps;
    const { lifeMs, ...rest } = input;
    const now = clock.now();
    const unused = { usedBy: null, usedAt: null, revokedAt: null };
    const link: OneTimeLinkRecord = {
      ...rest,
      ...unused,
      id: ids.next("oneTimeLink"),
      createdAt: now,
      expiresAt: now + lifeMs,
    };
    const token = makeLinkToken(randomBytes);
    await new OneTimeLinkStore(transaction).replace(link, hashLinkToken(token));
    return { link, token };
  }

  /** @returns null for an unknown, used, revoked or expired link, without telling which. */
  async find(token: string): Promise<OneTimeLinkRecord | null> {
    if (!isLinkToken(token)) return null;
    const link = await new OneTimeLinkStore(this.#deps.db).findByHash(hashLinkToken(token));
    return link !== null && isOpenLink(link, this.#deps.clock.now()) ? link : null;
  }

  /** For repeated form submissions. @returns the link that this user has used, or null. */
  async findUsedBy(token: string, usedBy: string): Promise<OneTimeLinkRecord | null> {
    if (!isLinkToken(token)) return null;
    const link = await new OneTimeLinkStore(this.#deps.db).findByHash(hashLinkToken(token));
    return link?.usedBy === usedBy ? link : null;
  }

  /** @param usedBy the user who signed in with it. @throws DomainError not_found where `find` would return null. */
  async spend(transaction: Kysely<Database>, token: string, usedBy: string): Promise<OneTimeLinkRecord> {
    const link = isLinkToken(token)
      ? await new OneTimeLinkStore(transaction).spend(hashLinkToken(token), usedBy, this.#deps.clock.now())
      : null;
    if (link) return link;
    throw voidLink();
  }

  /** The project's open invitations, oldest first. `after` is a link's id. */
  async listOpen(
    projectId: string,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly OneTimeLinkRecord[]> {
    return new OneTimeLinkStore(this.#deps.db).listOpen(projectId, this.#deps.clock.now(), page);
  }

  /** @throws DomainError not_found if the project has no such open link. */
  async revoke(transaction: Kysely<Database>, projectId: string, id: string): Promise<OneTimeLinkRecord> {
    const link = await new OneTimeLinkStore(transaction).revoke(projectId, id, this.#deps.clock.now());
    if (link) return link;
    throw new DomainError("not_found", "This project has no such open invitation.");
  }

  /** Revokes the project's open invitations created by this user. @param made `roles`: only for these roles; null: all. */
  async revokeMadeBy(transaction: Kysely<Database>, made: MadeBy): Promise<readonly OneTimeLinkRecord[]> {
    return new OneTimeLinkStore(transaction).revokeMadeBy(made, this.#deps.clock.now());
  }
}

/** The same text for every reason, so that it is not revealed. */
export function voidLink(): DomainError {
  return new DomainError("not_found", "This link was already used, replaced or revoked, or has expired.");
}
