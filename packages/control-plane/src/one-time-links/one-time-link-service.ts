import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
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

/** Set-up, reset and invitation links: made by who may, shown once, spent once. Who may is the callers' question. */
export class OneTimeLinkService {
  readonly #deps: OneTimeLinkServiceDeps;

  constructor(deps: OneTimeLinkServiceDeps) {
    this.#deps = deps;
  }

  /**
   * A new link; an earlier one of the same purpose for the same user, project and e-mail address is void from then on.
   * @returns the token too, which is kept nowhere.
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

  /** @returns null for a link that is unknown, spent, revoked or has run out: nobody is told which. */
  async find(token: string): Promise<OneTimeLinkRecord | null> {
    if (!isLinkToken(token)) return null;
    const link = await new OneTimeLinkStore(this.#deps.db).findByHash(hashLinkToken(token));
    return link !== null && isOpenLink(link, this.#deps.clock.now()) ? link : null;
  }

  /** For whoever sends a form twice. @returns the link that this user has spent, or null. */
  async findUsedBy(token: string, usedBy: string): Promise<OneTimeLinkRecord | null> {
    if (!isLinkToken(token)) return null;
    const link = await new OneTimeLinkStore(this.#deps.db).findByHash(hashLinkToken(token));
    return link?.usedBy === usedBy ? link : null;
  }

  /** @param usedBy the user that it let in. @throws DomainError not_found where `find` would give null. */
  async spend(transaction: Kysely<Database>, token: string, usedBy: string): Promise<OneTimeLinkRecord> {
    const link = isLinkToken(token)
      ? await new OneTimeLinkStore(transaction).spend(hashLinkToken(token), usedBy, this.#deps.clock.now())
      : null;
    if (link) return link;
    throw voidLink();
  }

  /** The project's open invitations, the oldest first. `after` is a link's id. */
  async listOpen(
    projectId: string,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly OneTimeLinkRecord[]> {
    return new OneTimeLinkStore(this.#deps.db).listOpen(projectId, this.#deps.clock.now(), page);
  }

  /** @throws DomainError not_found where the project has no such open link. */
  async revoke(transaction: Kysely<Database>, projectId: string, id: string): Promise<OneTimeLinkRecord> {
    const link = await new OneTimeLinkStore(transaction).revoke(projectId, id, this.#deps.clock.now());
    if (link) return link;
    throw new DomainError("not_found", "There is no such open invitation in this project.");
  }

  /** Takes back the project's open invitations that this user made. @param made `roles`: only those into one of these; null: all. */
  async revokeMadeBy(transaction: Kysely<Database>, made: MadeBy): Promise<readonly OneTimeLinkRecord[]> {
    return new OneTimeLinkStore(transaction).revokeMadeBy(made, this.#deps.clock.now());
  }
}

/** The same words for every reason: nobody is told which it was. */
export function voidLink(): DomainError {
  return new DomainError("not_found", "This link was used before, was replaced or taken back, or has run out.");
}
