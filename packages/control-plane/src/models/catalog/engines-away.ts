import type { EngineTarget } from "@fairlead/inference/ports/ports";
import { DomainError } from "@fairlead/protocol/errors";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import type { Tunnels } from "./model-candidates.ts";

const RETRY_SECONDS = 5;
/** Keeps the message short. */
const MAX_NAMED = 3;

/** Engines serve the model, but none of them can be called. */
export class EnginesAway extends DomainError {
  /** Nodes that would serve it if they were connected. */
  readonly awaited: readonly string[];

  constructor(engines: readonly EngineTarget[], tunnels: Tunnels) {
    super("no_running_engine", messageOf(engines, tunnels), { retryAfterSeconds: RETRY_SECONDS });
    this.awaited = engines.filter(({ absence }) => absence === null).map(({ nodeId }) => nodeId);
  }
}

function messageOf(engines: readonly EngineTarget[], tunnels: Tunnels): string {
  const reasons = engines.map((engine) => engine.absence ?? notConnected(engine, tunnels));
  if (reasons.length === 1) return reasons[0] ?? "";
  const named = reasons.slice(0, MAX_NAMED).map((reason) => ` ${reason}`);
  const others = reasons.length > MAX_NAMED ? ` And ${reasons.length - MAX_NAMED} more.` : "";
  return `None of the ${reasons.length} nodes that serve this model can respond.${named.join("")}${others}`;
}

function notConnected({ identifier, nodeId }: EngineTarget, tunnels: Tunnels): string {
  const lostAt = tunnels.lostAt(nodeId);
  if (lostAt !== null) {
    return `The daemon of node \`${identifier}\` has not been connected since ${rfc3339(lostAt)}. Its engine may still be running.`;
  }
  return tunnels.isReturning()
    ? `This server has just restarted, and the daemon of node \`${identifier}\` has not reconnected yet.`
    : `The daemon of node \`${identifier}\` is not connected. Its engine may still be running.`;
}
