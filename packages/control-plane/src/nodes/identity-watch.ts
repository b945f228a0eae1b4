import type { Clock } from "@fairlead/protocol/clock";
import type { Hello } from "@fairlead/protocol/daemon-link";
import { growingCache } from "../growing-cache.ts";
import type { NodeStatusService } from "./node-status-service.ts";

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
/** Without a take-over for so long, one daemon is alone again. */
const CALM_MS = 10 * 60_000;

/**
 * Notices a state folder that was copied. A daemon takes a new boot id at every start, so a boot id that comes back after
 * another was seen means two daemons with one identity. Boots are remembered in memory: they will alternate again.
 */
export class IdentityWatch {
  readonly #deps: IdentityWatchDeps;
  readonly #boots = growingCache<readonly Boot[]>(REMEMBERED_NODES);
  /** Nodes whose identity is in use twice, and when that was last seen, by the monotonic clock. */
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
      message: "One daemon alone uses this node's identity again.",
    });
  }
}

function conflictMessage(a: Boot, b: Boot): string {
  const hosts = a.hostName === b.hostName ? `both on ${a.hostName}` : `on ${a.hostName} and on ${b.hostName}`;
  return (
    `Two daemons use this node's identity at once, ${hosts}: its state folder was probably copied. ` +
    "Stop one of them, and give it a node of its own with a bootstrap token and an empty state folder."
  );
}
