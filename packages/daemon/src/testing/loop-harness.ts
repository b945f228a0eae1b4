import type { DesiredState } from "@fairlead/protocol/workload";
import type { PullPorts } from "../reconcile/execute.ts";
import { type EngineProbe, HealthMonitor } from "../reconcile/health.ts";
import { InFlight } from "../reconcile/in-flight.ts";
import { ReconcileLoop, type Snapshot } from "../reconcile/loop.ts";
import { MemoryRuntime } from "../runtime/memory-runtime.ts";
import { OWNER } from "./builders.ts";
import { FakeTime } from "./fake-time.ts";
import { MemorySecrets } from "./memory-secrets.ts";
import { silentLog } from "./silent-log.ts";

/** Pulls as anybody, with room for everything. */
export const freePulls: PullPorts = {
  registryAuth: async () => null,
  requireRoom: async () => undefined,
  onPulled: () => undefined,
};

/** One machine: its engine and its time outlive the daemons that run on it. */
export class Machine {
  readonly time = new FakeTime();
  readonly runtime = new MemoryRuntime(this.time);
  /** Images whose engines do not answer their health path. */
  readonly sick = new Set<string>();
  readonly inFlight = new InFlight();
  readonly secrets = new MemorySecrets();
  readonly events: string[] = [];
  pulls: PullPorts = freePulls;
  snapshot: Snapshot | null = null;
  /** Every picture that was told, oldest first. */
  readonly pictures: Snapshot[] = [];
  #loop: ReconcileLoop | null = null;
  #health: HealthMonitor | null = null;

  startDaemon(desired: DesiredState | null): ReconcileLoop {
    const probe: EngineProbe = {
      check: async ({ container }) => {
        if (this.runtime.byName(container.name)?.state !== "running") return "connection refused";
        return this.sick.has(container.image) ? "answered 503" : null;
      },
      facts: async () => ({ version: "1", models: ["tiny"] }),
    };
    const health = new HealthMonitor({
      probe,
      clock: this.time,
      timers: this.time,
      isBusy: () => false,
      onChange: () => loop.wake(),
    });
    const loop = new ReconcileLoop({
      runtime: this.runtime,
      owner: OWNER,
      health,
      inFlight: (container) => this.inFlight.count(container.id),
      secrets: this.secrets,
      pulls: this.pulls,
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
    // A step that hangs holds the loop up for so long.
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
