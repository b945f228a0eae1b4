import type { DesiredState } from "@fairlead/protocol/workload";
import type { NetworkRules, PullPorts } from "../reconcile/execute.ts";
import { type EngineProbe, HealthMonitor, type ProbeFailure } from "../reconcile/health.ts";
import { InFlight } from "../reconcile/in-flight.ts";
import { type LoopSnapshot, ReconcileLoop } from "../reconcile/loop.ts";
import { MemoryRuntime } from "../runtime/memory-runtime.ts";
import { OWNER } from "./builders.ts";
import { FakeTime } from "./fake-time.ts";
import { MemorySecrets } from "./memory-secrets.ts";
import { silentLog } from "./silent-log.ts";

/** Anonymous pulls with unlimited space. */
export const freePulls: PullPorts = {
  registryAuth: async () => null,
  requireRoom: async () => undefined,
  onPulled: () => undefined,
};

/** A machine: its engine and time survive restarts of the daemon. */
const failed = (words: string): ProbeFailure => ({ words, mayBeLoading: false });

export class Machine {
  readonly time = new FakeTime();
  readonly runtime = new MemoryRuntime(this.time);
  /** Images whose engines fail their health probe. */
  readonly sick = new Set<string>();
  readonly inFlight = new InFlight();
  readonly secrets = new MemorySecrets();
  readonly events: string[] = [];
  pulls: PullPorts = freePulls;
  networkRules: NetworkRules = { ready: async () => undefined, noWay: () => null };
  snapshot: LoopSnapshot | null = null;
  /** All snapshots, oldest first. */
  readonly pictures: LoopSnapshot[] = [];
  #loop: ReconcileLoop | null = null;
  #health: HealthMonitor | null = null;

  startDaemon(desired: DesiredState | null): ReconcileLoop {
    const probe: EngineProbe = {
      check: async ({ container }) => {
        if (this.runtime.byName(container.name)?.state !== "running") return failed("connection refused");
        return this.sick.has(container.image) ? failed("answered 500") : null;
      },
      facts: async () => ({ version: "1", models: ["tiny"] }),
    };
    const health = new HealthMonitor({
      probe,
      clock: this.time,
      timers: this.time,
      isBusy: () => false,
      processes: ({ id }) => this.runtime.processes(id),
      onChange: () => loop.wake(),
    });
    const loop = new ReconcileLoop({
      runtime: this.runtime,
      owner: OWNER,
      health,
      inFlight: (container) => this.inFlight.count(container.id),
      secrets: this.secrets,
      pulls: this.pulls,
      networkRules: this.networkRules,
      clock: this.time,
      timers: this.time,
      log: silentLog,
      onEvent: (kind, _workloadId, message) => this.events.push(`${kind}: ${message}`),
      onSnapshot: (snapshot) => {
        this.snapshot = snapshot;
        this.pictures.push(snapshot);
      },
    });
    this.#loop = loop;
    this.#health = health;
    loop.start(desired);
    return loop;
  }

  get loop(): ReconcileLoop {
    if (this.#loop === null) throw new Error("no daemon runs");
    return this.#loop;
  }

  async stopDaemon(): Promise<void> {
    const closed = this.#loop?.close();
    this.#health?.close();
    // A hanging step delays closing the loop by this much.
    await this.time.advance(5000);
    await closed;
    this.#loop = null;
  }

  running(): string[] {
    return this.runtime
      .all()
      .filter((container) => container.state === "running")
      .map((container) => container.name)
      .toSorted();
  }
}
