/**
 * Identifiers: `<prefix>_<26 characters>`, time-sortable, safe in a path segment (no `:` or `/`).
 * The characters are Crockford base 32: 48 bits of Unix milliseconds, then 80 random bits.
 */

export const ID_PREFIXES = {
  installation: "ins",
  project: "prj",
  user: "usr",
  key: "key",
  agent: "agt",
  node: "nod",
  chatSession: "ses",
  message: "msg",
  chatTurn: "trn",
  signInSession: "sis",
  signInRecord: "sir",
  bootstrapToken: "bst",
  oneTimeLink: "otl",
  signingKey: "sgk",
  workload: "wkl",
  event: "evt",
  ledgerEntry: "led",
  auditEvent: "aud",
  usageRecord: "usg",
  request: "req",
  storeEpoch: "epo",
  replica: "rep",
  incarnation: "inc",
} as const;

export type IdKind = keyof typeof ID_PREFIXES;
export type Id<K extends IdKind = IdKind> = `${(typeof ID_PREFIXES)[K]}_${string}`;
export type ProjectId = Id<"project">;
export type UserId = Id<"user">;
export type KeyId = Id<"key">;
export type AgentId = Id<"agent">;
export type NodeId = Id<"node">;
export type InstallationId = Id<"installation">;

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const RANDOM_BYTES = 10;
const TIME_CHARACTERS = 10;
const BODY_PATTERN = "[0-9a-hjkmnp-tv-z]{26}";

/** Where new ids come from, so that tests can make them predictable. */
export interface IdSource {
  next<K extends IdKind>(kind: K): Id<K>;
}

/** @param time Unix milliseconds. @param random ten bytes. */
export function encodeId<K extends IdKind>(kind: K, time: number, random: Uint8Array): Id<K> {
  let text = "";
  let rest = time;
  for (let i = 0; i < TIME_CHARACTERS; i++) {
    text = ALPHABET.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  let bits = 0;
  let held = 0;
  for (let i = 0; i < RANDOM_BYTES; i++) {
    bits = (bits << 8) | (random[i] ?? 0);
    // 80 bits are exactly sixteen characters, so no bit is left over at the end.
    for (held += 8; held >= 5; held -= 5) text += ALPHABET.charAt((bits >> (held - 5)) & 31);
  }
  return `${ID_PREFIXES[kind]}_${text}` as Id<K>;
}

const patterns = new Map<IdKind, RegExp>();

/** Whether a text is an id of this kind, as far as its form tells. */
export function isId<K extends IdKind>(kind: K, text: string): text is Id<K> {
  let pattern = patterns.get(kind);
  if (!pattern) {
    pattern = new RegExp(`^${ID_PREFIXES[kind]}_${BODY_PATTERN}$`);
    patterns.set(kind, pattern);
  }
  return pattern.test(text);
}

/** Ids made of one request to the system for its randomness, which costs more than all the rest of an id. */
const POOLED_IDS = 128;

/**
 * Ids from a clock (Unix milliseconds) and the system's randomness. Within one millisecond each is the one before plus one, so that
 * what one program makes sorts in the order in which it was made: the records of one transaction, say.
 */
export function systemIds(now: () => number): IdSource {
  const pool = new Uint8Array(POOLED_IDS * RANDOM_BYTES);
  let used = pool.length;
  let random = pool.subarray(0, RANDOM_BYTES);
  let last = -1;
  return {
    next: (kind) => {
      const time = now();
      if (time === last) {
        addOne(random);
      } else {
        if (used === pool.length) {
          crypto.getRandomValues(pool);
          used = 0;
        }
        random = pool.subarray(used, (used += RANDOM_BYTES));
        // Room for all the ids that a millisecond could hold.
        random[0] = (random[0] ?? 0) & 0x7f;
        last = time;
      }
      return encodeId(kind, time, random);
    },
  };
}

/** @param bytes of one number, the highest first. */
function addOne(bytes: Uint8Array): void {
  for (let i = bytes.length - 1; i >= 0; i--) {
    const sum = (bytes[i] ?? 0) + 1;
    bytes[i] = sum;
    if (sum < 256) return;
  }
}
