import type { Clock } from "@fairlead/protocol/clock";
import type { SealingPublicKey } from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import type { Kysely } from "kysely";
import { sealToNode } from "../auth/node-sealing.ts";
import type { SecretSealer } from "../auth/sealer.ts";
import type { Database } from "../db/schema.ts";
import { SecretStore } from "./secret-store.ts";

/** The node that owns a secret, as far as sealing goes. */
export interface SecretOwner {
  readonly id: string;
  readonly directSecrets: boolean;
  readonly sealingKey: SealingPublicKey | null;
}

export interface SecretServiceDeps {
  readonly db: Kysely<Database>;
  readonly sealer: SecretSealer;
  readonly clock: Clock;
}

/** Secrets of nodes. Whoever calls has checked that the caller may touch the node. A plain value is never kept. */
export class SecretService {
  readonly #deps: SecretServiceDeps;

  constructor(deps: SecretServiceDeps) {
    this.#deps = deps;
  }

  /** Creates or replaces. @throws DomainError node_not_enrolled for a direct secret that nobody could open yet */
  async put(
    transaction: Kysely<Database>,
    owner: SecretOwner,
    { name, value }: { readonly name: string; readonly value: string },
  ): Promise<void> {
    const sealed = await this.#seal(owner, name, Buffer.from(value));
    const sealedBy = owner.directSecrets ? "node" : "master";
    const secret = { nodeId: owner.id, name, sealedBy, sealed, updatedAt: this.#deps.clock.now() } as const;
    await new SecretStore(transaction).put(secret);
  }

  /** @returns whether there was one. */
  async delete(transaction: Kysely<Database>, nodeId: string, name: string): Promise<boolean> {
    return new SecretStore(transaction).delete(nodeId, name);
  }

  /** Names only, with when each was last set (Unix milliseconds). */
  async names(nodeId: string): Promise<{ readonly name: string; readonly updatedAt: number }[]> {
    const secrets = await new SecretStore(this.#deps.db).list(nodeId);
    return secrets.map(({ name, updatedAt }) => ({ name, updatedAt }));
  }

  async #seal(owner: SecretOwner, name: string, plain: Uint8Array): Promise<string> {
    if (!owner.directSecrets) return this.#deps.sealer.seal(plain, `node secret ${owner.id} ${name}`);
    if (!owner.sealingKey) {
      throw new DomainError(
        "node_not_enrolled",
        "This node takes direct secrets and has not enrolled yet, so nothing can be sealed to it. Start its daemon first.",
      );
    }
    return sealToNode(plain, owner.sealingKey);
  }
}
