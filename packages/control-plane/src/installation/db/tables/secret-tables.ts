/** Rows of secrets, the same for every kind of owner; `schema.ts` says how rows rest. */

export interface SecretTable {
  owner_id: string;
  name: string;
  /** Grows with every change. */
  version: number;
  /** `master`: an envelope by the master key. `node`: a JWE that only the node can open. */
  sealed_by: string;
  /** "" once it is deleted. */
  sealed: string;
  /** The node's public sealing key that a JWE is for; null for an envelope. */
  sealed_to: string | null;
  /** Of nodes: 1 where the engine gets it without its config naming it. */
  provider_key: number;
  /** 1: kept for its version, so that none is used twice. */
  deleted: number;
  created_at: number;
  updated_at: number;
}
