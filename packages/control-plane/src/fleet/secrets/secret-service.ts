import type { SealingPublicKey } from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import { type SecretAnswer, secretBinding } from "@fairlead/protocol/secrets";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import { sealToNode } from "../../access/auth/sealing/node-sealing.ts";
import type { SecretSealer } from "../../access/auth/sealing/sealer.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import { type SecretFacts, type SecretRecord, secretContext, versionName } from "./secret.ts";
import { type SecretOwnerKind, secretKey } from "./secret-key.ts";
import { SecretStore } from "./secret-store.ts";

/** A node as the recipient of secrets. */
export interface OpeningNode {
  readonly id: string;
  readonly directSecrets: boolean;
  readonly sealingKey: SealingPublicKey | null;
}

/** The owner of a secret, for sealing. */
export interface SecretOwner {
  readonly id: string;
  /** The node itself, or the agent's node. Null: deleted. */
  readonly node: OpeningNode | null;
}

export interface SecretServiceDeps {
  readonly kind: SecretOwnerKind;
  readonly db: Kysely<Database>;
  readonly sealer: SecretSealer;
  readonly clock: Clock;
}

export interface PutSecret {
  readonly name: string;
  readonly value: string;
  /** The engine gets it even if its config does not name it; undefined: unchanged. */
  readonly providerKey?: boolean;
}

/** Secrets of one kind of owner. Callers check permissions. Plain values are never stored. */
export class SecretService {
  readonly #deps: SecretServiceDeps;

  constructor(deps: SecretServiceDeps) {
    this.#deps = deps;
  }

  get kind(): SecretOwnerKind {
    return this.#deps.kind;
  }

  /**
   * Creates a secret or its next version.
   * @param transaction with the owner's row locked. @throws DomainError node_not_enrolled for a direct secret that no node can decrypt yet;
   * invalid_request without a node
   */
  async put(transaction: Kysely<Database>, owner: SecretOwner, secret: PutSecret): Promise<SecretFacts> {
    const store = this.#store(transaction);
    const former = await store.find(owner.id, secret.name);
    const draft = {
      ownerId: owner.id,
      name: secret.name,
      version: (await store.lastVersion(owner.id, secret.name)) + 1,
      providerKey: secret.providerKey ?? former?.providerKey ?? false,
      updatedAt: this.#deps.clock.now(),
    };
    const record = { ...draft, ...(await this.#seal(owner, draft, Buffer.from(secret.value))) };
    await store.put(record);
    return factsOf(record, owner.node);
  }

  /** @returns the deleted version, or null if it was already deleted. @throws DomainError not_found if it never existed */
  async delete(transaction: Kysely<Database>, ownerId: string, name: string): Promise<number | null> {
    const store = this.#store(transaction);
    const version = await store.lastVersion(ownerId, name);
    if (version === 0) throw new DomainError("not_found", `This ${this.kind} has no secret with that name.`);
    return (await store.delete(ownerId, name)) ? version : null;
  }

  /** The same, without an error if it never existed. */
  async forget(transaction: Kysely<Database>, ownerId: string, name: string): Promise<void> {
    await this.#store(transaction).delete(ownerId, name);
  }

  async list(owner: SecretOwner): Promise<SecretFacts[]> {
    const secrets = await this.#store(this.#deps.db).list(owner.id);
    return secrets.map((secret) => factsOf(secret, owner.node));
  }

  /** Current versions by name, and whether the engine gets each in any case. */
  async held(
    transaction: Kysely<Database>,
    ownerId: string,
  ): Promise<ReadonlyMap<string, { readonly version: string; readonly providerKey: boolean }>> {
    const secrets = await this.#store(transaction).list(ownerId);
    return new Map(
      secrets.map((secret) => [secret.name, { version: versionName(secret), providerKey: secret.providerKey }]),
    );
  }

  /** A secret sealed to the node's current key. */
  async deliver(owner: SecretOwner, name: string): Promise<SecretAnswer> {
    const { node } = owner;
    const secret = await this.#store(this.#deps.db).find(owner.id, name);
    if (!secret || !node?.sealingKey) return { state: "missing" };
    if (isStale(secret, node)) return { state: "stale" };
    const version = versionName(secret);
    if (secret.sealedBy === "node") return { state: "sealed", version, jwe: secret.sealed };
    const plain = await this.#deps.sealer.open(secret.sealed, secretContext(this.kind, secret));
    const sealing = { key: node.sealingKey, binding: this.#binding(node, secret) };
    return { state: "sealed", version, jwe: await sealToNode(plain, sealing) };
  }

  async #seal(
    { node }: SecretOwner,
    secret: Omit<SecretRecord, "sealed" | "sealedBy" | "sealedTo">,
    plain: Uint8Array,
  ): Promise<Pick<SecretRecord, "sealed" | "sealedBy" | "sealedTo">> {
    if (node === null) {
      const message =
        "The agent's node was deleted, and secrets are encrypted for the node. Set another node as `runtimeProvider` first.";
      throw new DomainError("invalid_request", message, { param: "runtimeProvider" });
    }
    if (!node.directSecrets) {
      return {
        sealed: await this.#deps.sealer.seal(plain, secretContext(this.kind, secret)),
        sealedBy: "master",
        sealedTo: null,
      };
    }
    const { sealingKey: key } = node;
    if (!key) {
      throw new DomainError(
        "node_not_enrolled",
        "The node uses direct secrets and has not enrolled yet, so secrets cannot be encrypted for it. Start its daemon first.",
      );
    }
    const binding = this.#binding(node, secret);
    return { sealed: await sealToNode(plain, { key, binding }), sealedBy: "node", sealedTo: key.x };
  }

  #binding(node: OpeningNode, secret: Omit<SecretRecord, "sealed" | "sealedBy" | "sealedTo">): string {
    return secretBinding(node.id, secretKey(this.kind, secret), versionName(secret));
  }

  #store(db: Kysely<Database>): SecretStore {
    return new SecretStore(db, this.kind);
  }
}

function isStale({ sealedBy, sealedTo }: SecretRecord, node: OpeningNode | null): boolean {
  return sealedBy === "node" && sealedTo !== node?.sealingKey?.x;
}

function factsOf(secret: SecretRecord, node: OpeningNode | null): SecretFacts {
  const { name, version, updatedAt } = secret;
  return { name, version, updatedAt, stale: isStale(secret, node) };
}
