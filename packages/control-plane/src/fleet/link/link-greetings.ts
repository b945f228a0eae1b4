/** One link that has not said hello yet. */
export interface Greeting {
  /** Its hello is being answered: from here on the time is ours. */
  answering(): void;
  /** Its hello was refused: it may say another one within its time. */
  refused(): void;
  /** It was greeted, or is gone. */
  done(): void;
}

export interface LinkGreetingsOptions {
  /** How long a link may take to say hello. */
  readonly helloMs: number;
  /** Links of one node without hello; one more ends the oldest. */
  readonly perNode: number;
}

type End = (bound: "link_hello" | "links_without_hello") => void;

/** Links that are open and were not greeted yet: how many a node may have, and for how long. */
export class LinkGreetings {
  readonly #options: LinkGreetingsOptions;
  /** By node, the oldest first. */
  readonly #waiting = new Map<string, Set<WaitingLink>>();

  constructor(options: LinkGreetingsOptions) {
    this.#options = options;
  }

  /** Nodes, not links: one node must not look like a fleet. */
  get nodes(): number {
    return this.#waiting.size;
  }

  /** @param end closes the link. */
  open(nodeId: string, end: End): Greeting {
    const { helloMs, perNode } = this.#options;
    const links = this.#waiting.get(nodeId) ?? new Set();
    this.#waiting.set(nodeId, links);
    const link = new WaitingLink(helloMs, end, () => {
      links.delete(link);
      if (links.size === 0 && this.#waiting.get(nodeId) === links) this.#waiting.delete(nodeId);
    });
    links.add(link);
    const [oldest] = links;
    if (links.size > perNode) oldest?.end("links_without_hello");
    return link;
  }
}

class WaitingLink implements Greeting {
  readonly #end: End;
  readonly #onDone: () => void;
  readonly #timer: NodeJS.Timeout;
  #answering = false;
  #late = false;

  constructor(helloMs: number, end: End, onDone: () => void) {
    this.#end = end;
    this.#onDone = onDone;
    this.#timer = setTimeout(() => this.#onLate(), helloMs).unref();
  }

  answering(): void {
    this.#answering = true;
  }

  refused(): void {
    this.#answering = false;
    if (this.#late) this.#onLate();
  }

  done(): void {
    clearTimeout(this.#timer);
    this.#late = false;
    this.#onDone();
  }

  end(...[bound]: Parameters<End>): void {
    this.done();
    this.#end(bound);
  }

  #onLate(): void {
    this.#late = true;
    if (!this.#answering) this.end("link_hello");
  }
}
