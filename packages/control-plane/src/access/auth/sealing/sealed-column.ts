import type { Database } from "../../../installation/db/tables/schema.ts";

/** One place in the store that the master key seals. */
export interface SealedColumn {
  readonly table: keyof Database;
  readonly column: string;
  /** Primary key, in its order. */
  readonly key: readonly string[];
  /** What else the context is made of. */
  readonly also: readonly string[];
  /** What a row's value is sealed under. */
  readonly contextOf: (row: Readonly<Record<string, string>>) => string;
}
