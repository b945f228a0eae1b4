import { type SigningPublicKey, signingPublicKeySchema } from "@fairlead/protocol/enrollment";
import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";

/** The keys of deleted nodes. They outlive the node's project, so that a daemon that comes back much later still learns its end. */
export class DeletedNodeStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async insert(node: { readonly id: string; readonly signingKey: SigningPublicKey }, at: number): Promise<void> {
    await this.#db
      .insertInto("deleted_node")
      .values({ id: node.id, signing_key: JSON.stringify(node.signingKey), deleted_at: at })
      .onConflict((conflict) => conflict.column("id").doNothing())
      .execute();
  }

  async signingKey(id: string): Promise<SigningPublicKey | null> {
    const row = await this.#db.selectFrom("deleted_node").select("signing_key").where("id", "=", id).executeTakeFirst();
    return row ? signingPublicKeySchema.parse(JSON.parse(row.signing_key)) : null;
  }
}
