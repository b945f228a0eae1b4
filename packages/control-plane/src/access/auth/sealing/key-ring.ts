import { CLOCK_SKEW_SECONDS } from "@fairlead/protocol/enrollment";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JSONWebKeySet, type JWK } from "jose";
import type { Kysely } from "kysely";
import type { Database } from "../../../installation/db/tables/schema.ts";
import { StartError } from "../../../installation/process/start-error.ts";
import { KeyRingStore, publicJwkSchema, type SigningKeyRecord } from "./key-ring-store.ts";
import type { SealedColumn } from "./sealed-column.ts";
import type { SecretSealer } from "./sealer.ts";

/** The keys that sign this installation's tokens. The newest signs; older ones still verify. */
export interface KeyRing {
  /** Changes with a rotation; do not cache. */
  readonly signing: SigningKey;
  /** The content of `/.well-known/jwks.json`. The same object until the keys change. */
  publicJwks(): JSONWebKeySet;
  /**
   * Creates a new signing key. The previous one is published until the last token it signed has expired.
   * @returns the new key's id
   */
  rotate(options?: RotateOptions): Promise<string>;
}

export interface RotateOptions {
  /** Runs in the rotation's transaction, with the new key's id. */
  readonly alongside?: (transaction: Kysely<Database>, keyId: string) => Promise<void>;
  /** Previous keys no longer verify, so all their tokens end. For leaked keys. */
  readonly forgetFormer?: boolean;
}

export interface SigningKey {
  readonly keyId: string;
  readonly privateKey: CryptoKey;
}

export const SIGNING_ALGORITHM = "EdDSA";

/** The longest token lifetime (see `users/user-service.ts`) plus clock skew: how long retired keys are published. */
export const RETIRED_KEY_MS = (30 * 24 * 3600 + CLOCK_SKEW_SECONDS) * 1000;

export interface KeyRingOptions {
  readonly store: KeyRingStore;
  readonly sealer: SecretSealer;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** Opens the ring, creating the first key in a new store. @throws StartError if it was sealed with another master key. */
export async function openKeyRing(options: KeyRingOptions): Promise<KeyRing> {
  const { store, sealer } = options;
  const known = await store.list();
  if (known.length === 0) {
    const first = await createSigningKey(options);
    await store.insert(first.record);
    return new StoredKeyRing(options, [first.record], first.key);
  }
  const newest = known.find((record) => record.retiredAt === null);
  if (!newest) throw new StartError("All signing keys in the store are retired, so no tokens can be signed.");
  return new StoredKeyRing(options, known, { keyId: newest.id, privateKey: await openPrivateKey(newest, sealer) });
}

class StoredKeyRing implements KeyRing {
  readonly #options: KeyRingOptions;
  #signing: SigningKey;
  #records: readonly SigningKeyRecord[];
  #published: JSONWebKeySet = { keys: [] };
  #rotating: Promise<unknown> = Promise.resolve();

  constructor(options: KeyRingOptions, records: readonly SigningKeyRecord[], signing: SigningKey) {
    this.#options = options;
    this.#records = records;
    this.#signing = signing;
  }

  get signing(): SigningKey {
    return this.#signing;
  }

  publicJwks(): JSONWebKeySet {
    const now = this.#options.clock.now();
    const live = this.#records.filter(({ retiredAt }) => retiredAt === null || now < retiredAt + RETIRED_KEY_MS);
    if (live.length !== this.#records.length || this.#published.keys.length === 0) {
      this.#records = live;
      this.#published = { keys: live.map((record) => record.publicJwk) };
    }
    return this.#published;
  }

  async rotate(options: RotateOptions = {}): Promise<string> {
    const rotation = this.#rotating.then(() => this.#rotate(options));
    this.#rotating = rotation.catch(() => undefined);
    return rotation;
  }

  async #rotate({ alongside = nothing, forgetFormer = false }: RotateOptions): Promise<string> {
    const { store, clock } = this.#options;
    const { record, key } = await createSigningKey(this.#options);
    const records = await store.transaction(async (keys, transaction) => {
      await keys.retireAll(clock.now());
      await keys.deleteRetiredBefore(forgetFormer ? Number.MAX_SAFE_INTEGER : clock.now() - RETIRED_KEY_MS);
      await keys.insert(record);
      await alongside(transaction, record.id);
      return keys.list();
    });
    // Only stored keys may sign, so that tokens survive a crash.
    this.#records = records;
    this.#published = { keys: [] };
    this.#signing = key;
    return record.id;
  }
}

/** For a ring without a signing key. */
export async function insertSigningKey(
  db: Kysely<Database>,
  options: Pick<KeyRingOptions, "sealer" | "clock" | "ids">,
): Promise<void> {
  const { record } = await createSigningKey(options);
  await new KeyRingStore(db).insert(record);
}

async function nothing(): Promise<void> {}

async function createSigningKey(
  options: Pick<KeyRingOptions, "sealer" | "clock" | "ids">,
): Promise<{ readonly record: SigningKeyRecord; readonly key: SigningKey }> {
  const { sealer, clock, ids } = options;
  const id = ids.next("signingKey");
  const pair = await generateKeyPair(SIGNING_ALGORITHM, { crv: "Ed25519", extractable: true });
  const privateJwk = await exportJWK(pair.privateKey);
  const { kty, crv, x } = privateJwk;
  const record: SigningKeyRecord = {
    id,
    publicJwk: publicJwkSchema.parse({ kty, crv, x, kid: id, alg: SIGNING_ALGORITHM, use: "sig" }),
    sealedJwk: await sealer.seal(Buffer.from(JSON.stringify(privateJwk)), signingKeyContext(id)),
    masterKeyId: sealer.keyId,
    createdAt: clock.now(),
    retiredAt: null,
  };
  return { record, key: { keyId: id, privateKey: pair.privateKey } };
}

async function openPrivateKey(record: SigningKeyRecord, sealer: SecretSealer): Promise<CryptoKey> {
  if (record.masterKeyId !== sealer.keyId) {
    throw new StartError(
      `The signing key ${record.id} was sealed with the master key ${record.masterKeyId}, but the configured master key is ` +
        `${sealer.keyId}. Restore the correct master key file.`,
    );
  }
  const plain = await sealer.open(record.sealedJwk, signingKeyContext(record.id));
  const key = await importJWK(JSON.parse(Buffer.from(plain).toString()) as JWK, SIGNING_ALGORITHM);
  if (key instanceof Uint8Array) throw new StartError(`The signing key ${record.id} is not an Ed25519 key.`);
  return key;
}

/** The sealing context of a signing key. */
export function signingKeyContext(id: string): string {
  return `signing_key/${id}`;
}

/** What the master key seals in this room. */
export const SEALED_SIGNING_KEYS: readonly SealedColumn[] = [
  {
    table: "signing_key",
    column: "sealed_jwk",
    key: ["id"],
    also: [],
    contextOf: ({ id = "" }) => signingKeyContext(id),
  },
];
