/** Who sends the input. No party is trusted, and each is limited separately. */
export type Party = "anyone" | "browser" | "caller" | "member" | "node" | "workload" | "upstream" | "issuer";

/** One limit on what an outside party can make Fairlead store, do or wait for. */
export interface BoundRow {
  readonly party: Party;
  /** Where the input enters: a route, a connection, a message. */
  readonly entry: string;
  /** The limit with its unit, and the setting that changes it. */
  readonly limit: string;
  /** What the party sees when the limit is reached. */
  readonly effect: string;
  /** The metric or log line that shows it. Absent: `fairlead_bounds_reached_total` with this row's name as `bound`. */
  readonly counted?: string;
  /** The event or log line that asks an operator to act. Absent if no action is needed. */
  readonly event?: string;
  /** `<file>: <part of the test's name>`. */
  readonly test: string;
}

export type BoundRows = Readonly<Record<string, BoundRow>>;
