/** Ends one open link. */
type End = () => void;

/** At most one daemon speaks for a node: the one that said hello last. */
export class LinkHolders {
  readonly #holders = new Map<string, End>();

  /** Gives the node's place to this link, and ends the one that had it. */
  take(nodeId: string, end: End): void {
    const former = this.#holders.get(nodeId);
    this.#holders.set(nodeId, end);
    if (former !== end) former?.();
  }

  /** This link is gone; a newer one's place is not touched. */
  leave(nodeId: string, end: End): void {
    if (this.#holders.get(nodeId) === end) this.#holders.delete(nodeId);
  }
}
