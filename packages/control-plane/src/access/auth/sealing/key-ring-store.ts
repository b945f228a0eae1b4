import type { Kysely } from "kysely";
import { z } from "zod";
import type { Database, SigningKeyTable } from "../../../installation/db/tables/schema.ts";

/** A public Ed25519 key as it is published (RFC 8037). */
export const publicJwkSchema = z.object({
  kty: z.literal("OKP"),
  crv: z.literal("Ed25519"),
  x: z.string(),
  kid: z.string(),
  alg: z.literal("EdDSA"),
  use: z.literal("sig"),
});
export type PublicJwk = z.infer<typeof publicJwkSchema>;

export interface SigningKeyRecord {
  readonly id: string;
  readonly publicJwk: PublicJwk;
  readonly sealedJwk: string;
  readonly masterKeyId: string;
  readonly createdAt: number;
  readonly retiredAt: number | null;
}

export class KeyRingStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** All keys, the newest first. */
  async list(): Promise<readonly SigningKeyRecord[]> {
    const query = this.#db.selectFrom("signing_key").selectAll().orderBy("created_at", "desc").orderBy("id", "desc");
    return (await query.execute()).map(fromRow);
  }

  transaction<T>(work: (keys: KeyRingStore, transaction: Kysely<Database>) => Promise<T>): Promise<T> {
    return this.#db.transaction().execute((transaction) => work(new KeyRingStore(transaction), transaction));
  }

  /** From then on none of those that are here signs. */
  async retireAll(now: number): Promise<void> {
    await this.#db.updateTable("signing_key").set({ retired_at: now }).where("retired_at", "is", null).execute();
  }

  async deleteRetiredBefore(moment: number): Promise<void> {
    await this.#db.deleteFrom("signing_key").where("retired_at", "<", moment).execute();
  }

  async insert(key: SigningKeyRecord): Promise<void> {
    const row: SigningKeyTable = {
      id: key.id,
      public_jwk: JSON.stringify(key.publicJwk),
      sealed_jwk: key.sealedJwk,
      master_key_id: key.masterKeyId,
      created_at: key.createdAt,
      retired_at: key.retiredAt,
    };
    await this.#db.insertInto("signing_key").values(row).execute();
  }
}

function fromRow(row: SigningKeyTable): SigningKeyRecord {
  return {
    id: row.id,
    publicJwk: publicJwkSchema.parse(JSON.parse(row.public_jwk)),
    sealedJwk: row.sealed_jwk,
    masterKeyId: row.master_key_id,
    createdAt: row.created_at,
    retiredAt: row.retired_at,
  };
}
