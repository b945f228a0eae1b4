import type { Clock } from "@fairlead/protocol/clock";
import { CLOCK_SKEW_SECONDS } from "@fairlead/protocol/enrollment";
import type { IdSource } from "@fairlead/protocol/ids";
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JSONWebKeySet, type JWK } from "jose";
import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
import { StartError } from "../start-error.ts";
import { KeyRingStore, publicJwkSchema, type SigningKeyRecord } from "./key-ring-store.ts";
import type { SecretSealer } from "./sealer.ts";

/** The keys that sign every token of this installation. The newest signs; older ones still verify, so that rotation can overlap. */
export interface KeyRing {
  /** Changes with a rotation: ask for it each time. */
  readonly signing: SigningKey;
  /** What `/.well-known/jwks.json` answers; public parts only. The same object until a key comes or goes. */
  publicJwks(): JSONWebKeySet;
  /**
   * Makes a new key and signs with it from now on. The one before is published until the last token that it signed has run out.
   * @returns the new key's id
   */
  rotate(options?: RotateOptions): Promise<string>;
}

export interface RotateOptions {
  /** Runs in the rotation's transaction, with the new key's id. */
  readonly alongside?: (transaction: Kysely<Database>, keyId: string) => Promise<void>;
  /** Former keys verify nothing any more, and all that they signed ends: for a key that leaked. */
  readonly forgetFormer?: boolean;
}

export interface SigningKey {
  readonly keyId: string;
  readonly privateKey: CryptoKey;
}

export const SIGNING_ALGORITHM = "EdDSA";

/** No token lives longer (the operator's, see `users/user-service.ts`), and clocks may differ: so long a retired key is published. */
export const RETIRED_KEY_MS = (30 * 24 * 3600 + CLOCK_SKEW_SECONDS) * 1000;

export interface KeyRingOptions {
  readonly store: KeyRingStore;
  readonly sealer: SecretSealer;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** Opens the ring, and makes its first key in a new store. @throws StartError when the master key is not the one that sealed it. */
export async function openKeyRing(options: KeyRingOptions): Promise<KeyRing> {
  const { store, sealer } = options;
  const known = await store.list();
  if (known.length === 0) {
    const first = await createSigningKey(options);
    await store.insert(first.record);
    return new StoredKeyRing(options, [first.record], first.key);
  }
  const newest = known.find((record) => record.retiredAt === null);
  if (!newest) throw new StartError("Every signing key in the store is retired; none is left to sign with.");
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
    // Only what is in the store may sign: after a crash the tokens must still be good.
    this.#records = records;
    this.#published = { keys: [] };
    this.#signing = key;
    return record.id;
  }
}

/** Into a ring that has none that signs (any more). */
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
      `The signing key ${record.id} was sealed by the master key ${record.masterKeyId}, and the configured one is ` +
        `${sealer.keyId}. Put the right master key file back.`,
    );
  }
  const plain = await sealer.open(record.sealedJwk, signingKeyContext(record.id));
  const key = await importJWK(JSON.parse(Buffer.from(plain).toString()) as JWK, SIGNING_ALGORITHM);
  if (key instanceof Uint8Array) throw new StartError(`The signing key ${record.id} is not an Ed25519 key.`);
  return key;
}

/** What a signing key is sealed under. */
export function signingKeyContext(id: string): string {
  return `signing_key/${id}`;
}
