import { Agent, type ClientRequestArgs, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

export interface EngineAddress {
  readonly host: string;
  readonly port: number;
}

export interface EngineConnectionsOptions {
  /** Milliseconds that a connection may lie idle before it is closed. */
  readonly idleMs?: number;
  /** Milliseconds that an engine must have left an idle one open, before its connections are used twice. */
  readonly trialMs?: number;
}

const IDLE_MS = 1000;
/** Servers close what lies idle, some after 2 s: one that is closed just when a request comes takes the request with it. */
const TRIAL_MS = 2000;

/**
 * Connections to engines, used again where that is safe: a fresh one costs more than the rest of a small call. Some engines close
 * after an answer although they promise to keep the connection (llama-server does after streams), and then the next request is lost.
 * So an engine first has to show that it keeps one, and is tried anew once it has closed one by itself.
 */
export class EngineConnections {
  readonly #trialMs: number;
  /** By engine: the agent of the connection that is its trial, or the shared one where it has passed. */
  readonly #agents = new Map<string, Agent>();
  /** Not to be used again. */
  readonly #spent = new WeakSet<Duplex>();
  readonly #shared: Agent;

  constructor({ idleMs = IDLE_MS, trialMs = TRIAL_MS }: EngineConnectionsOptions = {}) {
    this.#trialMs = trialMs;
    this.#shared = new KeepingAgent(idleMs, this.#spent, (engine, end) => {
      if (end === "closed idle") this.#agents.delete(engine);
    });
  }

  /** For `http.request`. False: a connection of its own. */
  agentFor(address: EngineAddress): Agent | false {
    const known = this.#agents.get(nameOf(address));
    if (known !== undefined) return known === this.#shared && known;
    const trial = new KeepingAgent(this.#trialMs, this.#spent, (engine, end) => {
      if (this.#agents.get(engine) !== trial) return;
      if (end === "kept") this.#agents.set(engine, this.#shared);
      else this.#agents.delete(engine);
    });
    this.#agents.set(nameOf(address), trial);
    return trial;
  }

  /** To be told of every answer: after one whose length was not said, the connection may end with it. */
  onAnswer(answer: IncomingMessage, address: EngineAddress): void {
    if (answer.headers["content-length"] !== undefined) return;
    this.#spent.add(answer.socket);
    // A stream may last for hours, and says nothing: another request may be the trial.
    const agent = this.#agents.get(nameOf(address));
    if (agent !== undefined && agent !== this.#shared) this.#agents.delete(nameOf(address));
  }
}

/** How a connection ended: in a request or after the only one, closed by the engine while it lay idle, or by us after all of its idle time. */
type End = "used" | "closed idle" | "kept";

class KeepingAgent extends Agent {
  readonly #spent: WeakSet<Duplex>;
  readonly #onEnd: (engine: string, end: End) => void;
  readonly #ends = new WeakMap<Duplex, End>();

  constructor(idleMs: number, spent: WeakSet<Duplex>, onEnd: (engine: string, end: End) => void) {
    super({ keepAlive: true, timeout: idleMs });
    this.#spent = spent;
    this.#onEnd = onEnd;
  }

  override createConnection(
    ...[options, callback]: Parameters<Agent["createConnection"]>
  ): ReturnType<Agent["createConnection"]> {
    const socket = super.createConnection(options, callback);
    socket?.on("timeout", () => {
      if (this.#ends.get(socket) === "closed idle") this.#ends.set(socket, "kept");
    });
    socket?.once("close", () => this.#onEnd(nameOf(options), this.#ends.get(socket) ?? "used"));
    return socket;
  }

  override keepSocketAlive(socket: Duplex): boolean {
    // Node's own says false for an engine that promises less than a second.
    const kept: unknown = super.keepSocketAlive(socket);
    if (kept !== true || this.#spent.has(socket)) return false;
    this.#ends.set(socket, "closed idle");
    return true;
  }

  override reuseSocket(...[socket, request]: Parameters<Agent["reuseSocket"]>): void {
    this.#ends.set(socket, "used");
    super.reuseSocket(socket, request);
  }
}

function nameOf({ host, port }: Pick<ClientRequestArgs, "host" | "port">): string {
  return `${host}:${port}`;
}
