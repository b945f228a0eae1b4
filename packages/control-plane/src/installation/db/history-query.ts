/** Which events of a history to read. */
export interface HistoryQuery {
  readonly limit: number;
  /** The last id of the page before. */
  readonly after: string | null;
  /** These alone; at least one. */
  readonly kinds?: readonly string[] | undefined;
  /** Unix milliseconds. */
  readonly since?: number | undefined;
}
