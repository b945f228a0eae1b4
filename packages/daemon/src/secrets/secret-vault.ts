import { join } from "node:path";
import { SECRET_BINDING, secretBinding, secretKeySchema } from "@fairlead/protocol/secrets";
import { compactDecrypt, importJWK } from "jose";
import { z } from "zod";
import { DurableRecord } from "../state/durable-record.ts";
import type { FileLayer } from "../state/files.ts";
import type { NodeKeys } from "../state/identity-store.ts";

/** Decrypts a value that was encrypted to this node. @param binding identifies the value. @throws Error without the value */
async function openSecret(jwe: string, { keys, binding }: OpenOptions): Promise<Uint8Array> {
  const { plaintext, protectedHeader } = await compactDecrypt(jwe, await importJWK(keys.sealing, "ECDH-ES"), {
    keyManagementAlgorithms: ["ECDH-ES"],
    contentEncryptionAlgorithms: ["A256GCM"],
  });
  if (protectedHeader[SECRET_BINDING] !== binding) throw new Error("it was encrypted as a different secret");
  return plaintext;
}

interface OpenOptions {
  readonly keys: Pick<NodeKeys, "sealing">;
  readonly binding: string;
}

const sealedSchema = z.object({ version: z.string(), jwe: z.string() });
export type SealedSecret = z.infer<typeof sealedSchema>;

const vaultSchema = z.object({ nodeId: z.string(), secrets: z.record(secretKeySchema, sealedSchema) });

export interface VaultOptions {
  readonly files: FileLayer;
  readonly folder: string;
  readonly nodeId: string;
  readonly keys: Pick<NodeKeys, "sealing">;
}

/**
 * The node's secrets, stored in its state folder encrypted to its own key, so that it can start without the
 * control plane. Only values that can be decrypted are accepted. Keys: an
 * engine's secret by its name; each agent has its own namespace.
 */
export class SecretVault {
  readonly #options: VaultOptions;
  readonly #record: DurableRecord<z.infer<typeof vaultSchema>>;
  readonly #secrets = new Map<string, SealedSecret>();
  #saved = true;
  #saving: Promise<unknown> = Promise.resolve();

  constructor(options: VaultOptions) {
    this.#options = options;
    this.#record = new DurableRecord(options.files, join(options.folder, "secrets.json"), vaultSchema);
  }

  /** @returns whether some stored secrets are unusable and must be fetched again. */
  async load(): Promise<{ damaged: boolean }> {
    const loaded = await this.#record.load();
    let { damaged } = loaded;
    if (loaded.value?.nodeId !== this.#options.nodeId) return { damaged };
    for (const [key, sealed] of Object.entries(loaded.value.secrets)) {
      // The node's keys change when it enrols again.
      const opens = await this.#opens(key, sealed);
      if (opens) this.#secrets.set(key, sealed);
      else damaged = true;
    }
    return { damaged };
  }

  names(): string[] {
    return [...this.#secrets.keys()];
  }

  /** The stored version of the secret, or null. */
  versionOf(key: string): string | null {
    return this.#secrets.get(key)?.version ?? null;
  }

  /** The exact bytes, or null if not stored. */
  async open(key: string): Promise<Uint8Array | null> {
    const sealed = this.#secrets.get(key);
    return sealed ? this.#open(key, sealed) : null;
  }

  /** Accepts a secret, even if saving it fails. @returns false if this node cannot decrypt it */
  async put(key: string, sealed: SealedSecret): Promise<boolean> {
    if (!(await this.#opens(key, sealed))) return false;
    this.#secrets.set(key, sealed);
    this.#saved = false;
    return true;
  }

  /** @returns whether it existed. */
  forget(key: string): boolean {
    const had = this.#secrets.delete(key);
    if (had) this.#saved = false;
    return had;
  }

  /** Saves changes. The caller retries failures such as a full disk. */
  save(): Promise<void> {
    const turn = this.#saving.then(() => this.#save());
    this.#saving = turn.catch(() => undefined);
    return turn;
  }

  async #save(): Promise<void> {
    if (this.#saved) return;
    this.#saved = true;
    try {
      await this.#record.save({ nodeId: this.#options.nodeId, secrets: Object.fromEntries(this.#secrets) });
    } catch (error) {
      this.#saved = false;
      throw error;
    }
  }

  #open(key: string, { version, jwe }: SealedSecret): Promise<Uint8Array> {
    const { nodeId, keys } = this.#options;
    return openSecret(jwe, { keys, binding: secretBinding(nodeId, key, version) });
  }

  async #opens(key: string, sealed: SealedSecret): Promise<boolean> {
    return this.#open(key, sealed).then(
      () => true,
      () => false,
    );
  }
}
