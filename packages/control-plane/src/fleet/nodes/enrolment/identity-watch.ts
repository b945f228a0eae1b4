import { growingCache } from "@fairlead/hosting/growing-cache";
import type { Hello } from "@fairlead/protocol/daemon-link";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { NodeStatusService } from "../observed/node-status-service.ts";

export interface IdentityWatchDeps {
  readonly status: NodeStatusService;
  readonly clock: Clock;
}

/** One run of a daemon. */
interface Boot {
  readonly bootId: string;
  readonly hostName: string;
}

const REMEMBERED_BOOTS = 4;
const REMEMBERED_NODES = 100_000;
const HOUR_MS = 3_600_000;
/** Without a takeover for this long, there is only one daemon again. */
const CALM_MS = 10 * 60_000;

/**
 * Detects copied state folders. A daemon has a new boot id at every start, so an earlier boot id that returns means two daemons with one
 * identity. Boots are kept in memory: they alternate again.
 */
export class IdentityWatch {
  readonly #deps: IdentityWatchDeps;
  readonly #boots = growingCache<readonly Boot[]>(REMEMBERED_NODES);
  /** Nodes with two daemons, and when that was last seen, by the monotonic clock. */
  readonly #conflicts = growingCache<number>(REMEMBERED_NODES);

  constructor(deps: IdentityWatchDeps) {
    this.#deps = deps;
  }

  async hello(nodeId: string, { bootId, host }: Pick<Hello, "bootId" | "host">): Promise<void> {
    const boots = this.#boots.get(nodeId) ?? [];
    const current = { bootId, hostName: host.hostName };
    const others = boots.filter((boot) => boot.bootId !== bootId);
    this.#boots.set(nodeId, [...others, current].slice(-REMEMBERED_BOOTS));
    const latest = boots.at(-1);
    if (latest === undefined || latest.bootId === bootId || others.length === boots.length) return;
    const { clock, status } = this.#deps;
    this.#conflicts.set(nodeId, clock.monotonic());
    await status.note(nodeId, {
      kind: "identity_in_use_twice",
      message: conflictMessage(latest, current),
      once: `identity_in_use_twice.${Math.floor(clock.now() / HOUR_MS)}`,
    });
  }

  async heartbeat(nodeId: string): Promise<void> {
    const { clock, status } = this.#deps;
    const seenAt = this.#conflicts.get(nodeId);
    if (seenAt === undefined || clock.monotonic() - seenAt < CALM_MS) return;
    this.#conflicts.delete(nodeId);
    await status.note(nodeId, {
      kind: "identity_in_use_once",
      message: "The node's identity is used by a single daemon again.",
    });
  }
}

function conflictMessage(a: Boot, b: Boot): string {
  const hosts = a.hostName === b.hostName ? `both on ${a.hostName}` : `on ${a.hostName} and on ${b.hostName}`;
  return (
    `Two daemons use this node's identity at the same time, ${hosts}. Its state folder was probably copied. ` +
    "Stop one of them and enroll it as a separate node, with its own bootstrap token and an empty state folder."
  );
}
