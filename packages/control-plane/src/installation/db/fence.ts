/** Who runs on a database now: no part of the store's content, so backups leave it out. */
export const REPLICA_TABLE = "replica";

/**
 * Stops a process that lost its lease from writing: every transaction that writes locks the row of this process in `replica` until
 * it ends, and a server that takes over deletes the row.
 */
export interface Fence {
  /** Of this start of the process; the row's key. */
  readonly incarnation: string;
  /** Called when the row is gone. */
  lost(): void;
}

/** Another server has taken over. Nothing was written. */
export class FencedError extends Error {
  override readonly name = "FencedError";
  readonly code = "FENCED";

  constructor() {
    super("Another server has taken over this database.");
  }
}
