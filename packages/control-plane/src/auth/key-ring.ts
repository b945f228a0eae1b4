import type { Clock } from "@fairlead/protocol/clock";
import type { IdSource } from "@fairlead/protocol/ids";
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JSONWebKeySet, type JWK } from "jose";
import { StartError } from "../start-error.ts";
import { type KeyRingStore, publicJwkSchema, type SigningKeyRecord } from "./key-ring-store.ts";
import type { SecretSealer } from "./sealer.ts";

/** The keys that sign every token of this installation. The newest signs; older ones still verify, so that rotation can overlap. */
export interface KeyRing {
  readonly signing: { readonly keyId: string; readonly privateKey: CryptoKey };
  /** What `/.well-known/jwks.json` answers; public parts only. */
  publicJwks(): JSONWebKeySet;
}

export const SIGNING_ALGORITHM = "EdDSA";

export interface KeyRingOptions {
  readonly store: KeyRingStore;
  readonly sealer: SecretSealer;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** Opens the ring, and makes its first key in a new store. @throws StartError when the master key is not the one that sealed it. */
export async function openKeyRing(options: KeyRingOptions): Promise<KeyRing> {
  const known = await options.store.list();
  const records = known.length > 0 ? known : [await createSigningKey(options)];
  const now = options.clock.now();
  const newest = records.find((record) => record.retiredAt === null || record.retiredAt > now);
  if (!newest) throw new StartError("Every signing key in the store is retired; none is left to sign with.");
  const privateKey = await openPrivateKey(newest, options.sealer);
  const keys = records.map((record) => record.publicJwk);
  return {
    signing: { keyId: newest.id, privateKey },
    publicJwks: () => ({ keys }),
  };
}

async function createSigningKey({ store, sealer, clock, ids }: KeyRingOptions): Promise<SigningKeyRecord> {
  const id = ids.next("signingKey");
  const pair = await generateKeyPair(SIGNING_ALGORITHM, { crv: "Ed25519", extractable: true });
  const privateJwk = await exportJWK(pair.privateKey);
  const { kty, crv, x } = privateJwk;
  const record: SigningKeyRecord = {
    id,
    publicJwk: publicJwkSchema.parse({ kty, crv, x, kid: id, alg: SIGNING_ALGORITHM, use: "sig" }),
    sealedJwk: await sealer.seal(Buffer.from(JSON.stringify(privateJwk)), sealingContext(id)),
    masterKeyId: sealer.keyId,
    createdAt: clock.now(),
    retiredAt: null,
  };
  await store.insert(record);
  return record;
}

async function openPrivateKey(record: SigningKeyRecord, sealer: SecretSealer): Promise<CryptoKey> {
  if (record.masterKeyId !== sealer.keyId) {
    throw new StartError(
      `The signing key ${record.id} was sealed by the master key ${record.masterKeyId}, and the configured one is ` +
        `${sealer.keyId}. Put the right master key file back.`,
    );
  }
  const plain = await sealer.open(record.sealedJwk, sealingContext(record.id));
  const key = await importJWK(JSON.parse(Buffer.from(plain).toString()) as JWK, SIGNING_ALGORITHM);
  if (key instanceof Uint8Array) throw new StartError(`The signing key ${record.id} is not an Ed25519 key.`);
  return key;
}

function sealingContext(id: string): string {
  return `signing_key/${id}`;
}
