import type { Clock } from "@fairlead/protocol/clock";
import type { SealingPublicKey } from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import { type SecretAnswer, secretBinding } from "@fairlead/protocol/secrets";
import type { Kysely } from "kysely";
import { sealToNode } from "../auth/node-sealing.ts";
import type { SecretSealer } from "../auth/sealer.ts";
import type { Database } from "../db/schema.ts";
import { type NodeSecretRecord, secretContext, versionName } from "./secret.ts";
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

export interface PutSecret {
  readonly name: string;
  readonly value: string;
  /** The node's engine gets it without its config naming it; left out: as it was. */
  readonly providerKey?: boolean;
}

/** A secret as people may see it; times are Unix milliseconds. */
export interface SecretFacts {
  readonly name: string;
  readonly version: number;
  readonly updatedAt: number;
  /** Sealed to a key that the node no longer has. */
  readonly stale: boolean;
}

/** Secrets of nodes. Whoever calls has checked that the caller may touch the node. A plain value is never kept. */
export class SecretService {
  readonly #deps: SecretServiceDeps;

  constructor(deps: SecretServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Creates or replaces, as the next version.
   * @param transaction that holds the node's row. @throws DomainError node_not_enrolled for a direct secret that nobody could open yet
   */
  async put(transaction: Kysely<Database>, owner: SecretOwner, secret: PutSecret): Promise<SecretFacts> {
    const store = new SecretStore(transaction);
    const former = await store.find(owner.id, secret.name);
    const draft = {
      nodeId: owner.id,
      name: secret.name,
      version: (await store.lastVersion(owner.id, secret.name)) + 1,
      providerKey: secret.providerKey ?? former?.providerKey ?? false,
      updatedAt: this.#deps.clock.now(),
    };
    const record = { ...draft, ...(await this.#seal(owner, draft, Buffer.from(secret.value))) };
    await store.put(record);
    return factsOf(record, owner);
  }

  /** @returns the version that went, or null where it was gone already. @throws DomainError not_found where there never was one */
  async delete(transaction: Kysely<Database>, nodeId: string, name: string): Promise<number | null> {
    const store = new SecretStore(transaction);
    const version = await store.lastVersion(nodeId, name);
    if (version === 0) throw new DomainError("not_found", "This node has no secret of that name.");
    return (await store.delete(nodeId, name)) ? version : null;
  }

  /** The same without a word where there never was one. */
  async forget(transaction: Kysely<Database>, nodeId: string, name: string): Promise<void> {
    await new SecretStore(transaction).delete(nodeId, name);
  }

  async list(owner: SecretOwner): Promise<SecretFacts[]> {
    const secrets = await new SecretStore(this.#deps.db).list(owner.id);
    return secrets.map((secret) => factsOf(secret, owner));
  }

  /** What can be asked for by its name: which value that is, and whether the engine gets it anyway. */
  async held(
    transaction: Kysely<Database>,
    nodeId: string,
  ): Promise<ReadonlyMap<string, { readonly version: string; readonly providerKey: boolean }>> {
    const secrets = await new SecretStore(transaction).list(nodeId);
    return new Map(
      secrets.map((secret) => [secret.name, { version: versionName(secret), providerKey: secret.providerKey }]),
    );
  }

  /** A secret on its way to its node, sealed to the key that the node has now. */
  async deliver(owner: SecretOwner, name: string): Promise<SecretAnswer> {
    const secret = await new SecretStore(this.#deps.db).find(owner.id, name);
    if (!secret || !owner.sealingKey) return { state: "missing" };
    if (isStale(secret, owner)) return { state: "stale" };
    const version = versionName(secret);
    if (secret.sealedBy === "node") return { state: "sealed", version, jwe: secret.sealed };
    const plain = await this.#deps.sealer.open(secret.sealed, secretContext(secret));
    const binding = secretBinding(owner.id, name, version);
    return { state: "sealed", version, jwe: await sealToNode(plain, { key: owner.sealingKey, binding }) };
  }

  async #seal(
    owner: SecretOwner,
    secret: Omit<NodeSecretRecord, "sealed" | "sealedBy" | "sealedTo">,
    plain: Uint8Array,
  ): Promise<Pick<NodeSecretRecord, "sealed" | "sealedBy" | "sealedTo">> {
    if (!owner.directSecrets) {
      return { sealed: await this.#deps.sealer.seal(plain, secretContext(secret)), sealedBy: "master", sealedTo: null };
    }
    const { sealingKey: key } = owner;
    if (!key) {
      throw new DomainError(
        "node_not_enrolled",
        "This node takes direct secrets and has not enrolled yet, so nothing can be sealed to it. Start its daemon first.",
      );
    }
    const binding = secretBinding(owner.id, secret.name, versionName(secret));
    return { sealed: await sealToNode(plain, { key, binding }), sealedBy: "node", sealedTo: key.x };
  }
}

function isStale({ sealedBy, sealedTo }: NodeSecretRecord, { sealingKey }: SecretOwner): boolean {
  return sealedBy === "node" && sealedTo !== sealingKey?.x;
}

function factsOf(secret: NodeSecretRecord, owner: SecretOwner): SecretFacts {
  const { name, version, updatedAt } = secret;
  return { name, version, updatedAt, stale: isStale(secret, owner) };
}
