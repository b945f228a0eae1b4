import { join } from "node:path";
import { secretBinding, secretKeySchema } from "@fairlead/protocol/secrets";
import { z } from "zod";
import { DurableRecord } from "../state/durable-record.ts";
import type { FileLayer } from "../state/files.ts";
import type { NodeKeys } from "../state/identity-store.ts";
import { openSecret } from "./open-secret.ts";

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
 * The secrets that this node holds, as they rest in its state folder: sealed to its own key, so that a start without the
 * control plane has them (design §6). What it holds can be opened: everything else it does not take. By key: an
 * engine's secret is held by its name, and each agent has names of its own.
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

  /** @returns whether something was there that cannot be used: it is fetched again. */
  async load(): Promise<{ damaged: boolean }> {
    const loaded = await this.#record.load();
    let { damaged } = loaded;
    if (loaded.value?.nodeId !== this.#options.nodeId) return { damaged };
    for (const [key, sealed] of Object.entries(loaded.value.secrets)) {
      // The keys are others where this node has enrolled anew.
      const opens = await this.#opens(key, sealed);
      if (opens) this.#secrets.set(key, sealed);
      else damaged = true;
    }
    return { damaged };
  }

  names(): string[] {
    return [...this.#secrets.keys()];
  }

  /** Which value of the secret is held, or null. */
  versionOf(key: string): string | null {
    return this.#secrets.get(key)?.version ?? null;
  }

  /** The exact bytes, or null where it is not held. */
  async open(key: string): Promise<Uint8Array | null> {
    const sealed = this.#secrets.get(key);
    return sealed ? this.#open(key, sealed) : null;
  }

  /** Takes a secret over. It holds from now on, also where saving it fails. @returns false where this node cannot open it */
  async put(key: string, sealed: SealedSecret): Promise<boolean> {
    if (!(await this.#opens(key, sealed))) return false;
    this.#secrets.set(key, sealed);
    this.#saved = false;
    return true;
  }

  /** @returns whether there was one. */
  forget(key: string): boolean {
    const had = this.#secrets.delete(key);
    if (had) this.#saved = false;
    return had;
  }

  /** Writes what changed to disk. A failure (a full disk) is the caller's to retry. */
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
