import { MAX_LINK_CALLS, MAX_LINK_MESSAGE_BYTES } from "@fairlead/protocol/daemon-link";
import { jsonDepthWithin } from "@fairlead/protocol/values/json-depth";
import { parseJson } from "@fairlead/protocol/values/parse-json";
import type { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import type { BoundName } from "../../telemetry/bounds/bounds.ts";
import type { NodeRateKind } from "../../telemetry/bounds/node-rate-bounds.ts";
import type { NodeRates } from "../nodes/node-rates.ts";

export interface LinkGuardDeps {
  readonly nodeId: string;
  readonly rates: NodeRates;
  readonly bounds: Pick<BoundCounters, "reached">;
  /** Closes the link; nothing received after that counts. */
  readonly onFlood: (reason: string) => void;
}

/** Thrown into a call that exceeds the rate. */
export class TooManyCalls extends Error {
  override readonly name = "TooManyCalls";
  readonly retryAfterMs: number;

  constructor(kind: NodeRateKind, retryAfterMs: number) {
    super(`Too many ${kind} calls from this node. Retry in ${Math.ceil(retryAfterMs / 1000)} s.`);
    this.retryAfterMs = retryAfterMs;
  }
}

const MAX_DEPTH = 64;
const SPACE = 0x20;
const OPEN_OBJECT = 0x7b;

/** Limits one link, mostly counting per node, so that reconnecting resets nothing. */
export class LinkGuard {
  readonly #deps: LinkGuardDeps;
  #calls = 0;
  #flooded = false;

  constructor(deps: LinkGuardDeps) {
    this.#deps = deps;
  }

  /** A ping or pong. */
  control(): boolean {
    return this.#frames(1, 0);
  }

  /** @returns whether the message may be parsed. */
  message(data: Buffer, isBinary: boolean): boolean {
    if (!this.#frames(1, data.length)) return false;
    if (isBinary) return this.#flood("link_messages", "a message is binary");
    if (!jsonDepthWithin(data, MAX_DEPTH))
      return this.#flood("link_depth", `a message is nested more than ${MAX_DEPTH} levels deep`);
    const size = batchSize(data);
    if (size <= 1) return true;
    if (size > MAX_LINK_CALLS) return this.#flood("link_calls", `a message contains more than ${MAX_LINK_CALLS} calls`);
    return this.#frames(size - 1, 0);
  }

  /** A message larger than `MAX_LINK_MESSAGE_BYTES`; its socket closes by itself. */
  tooLarge(): void {
    this.#deps.bounds.reached("link_message_bytes");
    this.#tell(`a message is larger than ${MAX_LINK_MESSAGE_BYTES} bytes`);
  }

  /** @throws TooManyCalls if the node exceeds the rate of this kind. */
  async call<T>(kind: NodeRateKind, amount: number, run: () => Promise<T>): Promise<T> {
    const { rates, nodeId, bounds } = this.#deps;
    if (this.#flooded || this.#calls >= MAX_LINK_CALLS) {
      this.#flood("link_calls", `more than ${MAX_LINK_CALLS} calls are open at the same time`);
      throw new TooManyCalls(kind, 1000);
    }
    this.#calls += 1;
    try {
      if (rates.take(nodeId, kind, amount)) return await run();
      bounds.reached("link_call_rate");
      this.rejected();
      throw new TooManyCalls(kind, rates.msUntil(nodeId, kind, amount));
    } finally {
      this.#calls -= 1;
    }
  }

  /** A rejected call. Frequent rejections are a fault or an attack. */
  rejected(): void {
    const { rates, nodeId } = this.#deps;
    if (!rates.take(nodeId, "rejected"))
      this.#flood("link_rejections", "the daemon keeps sending calls that are rejected");
  }

  /** Whether another line about this node may be logged. */
  mayLog(): boolean {
    return this.#deps.rates.take(this.#deps.nodeId, "logged");
  }

  #frames(count: number, bytes: number): boolean {
    const { rates, nodeId } = this.#deps;
    if (this.#flooded) return false;
    if (!rates.take(nodeId, "frames", count)) return this.#flood("link_messages", "too many messages");
    return rates.take(nodeId, "bytes", bytes) || this.#flood("link_messages", "too many bytes");
  }

  #flood(bound: BoundName, reason: string): false {
    if (this.#flooded) return false;
    this.#deps.bounds.reached(bound);
    this.#tell(reason);
    return false;
  }

  #tell(reason: string): void {
    if (this.#flooded) return;
    this.#flooded = true;
    this.#deps.onFlood(reason);
  }
}

/** Number of calls in a message. Its depth is already checked. */
function batchSize(data: Buffer): number {
  if (data.find((byte) => byte > SPACE) === OPEN_OBJECT) return 1;
  try {
    const parsed: unknown = parseJson(data);
    return Array.isArray(parsed) ? parsed.length : 1;
  } catch {
    return 1;
  }
}
