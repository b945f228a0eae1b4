import type { DesiredState, WorkloadSpec } from "@fairlead/protocol/workload";
import fc from "fast-check";
import { expect, test } from "vitest";
import { sleep } from "../process/timers.ts";
import { RuntimeError } from "../runtime/container-runtime.ts";
import type { RuntimeCall } from "../runtime/memory-runtime.ts";
import { containerName, containerWorkload, isOwned, LABELS, ownershipLabels } from "../runtime/ownership.ts";
import { aDesiredState, aSpec, OWNER } from "../testing/builders.ts";
import { Machine } from "../testing/loop-harness.ts";

/** Seeded random histories of a machine: the loop keeps its invariants and converges. */

const IMAGES = ["example/a:1", "example/b:1"];
const FOREIGN = [
  { name: "postgres", labels: {} },
  { name: "fairlead-theirs-engine", labels: ownershipLabels({ ...OWNER, nodeId: "nod_theirs" }, aSpec(), 1) },
  { name: "fairlead-older-engine", labels: ownershipLabels({ ...OWNER, installationId: "ins_theirs" }, aSpec(), 1) },
];

const specs = fc
  .uniqueArray(
    fc.record({
      workload: fc.constantFrom("x", "y"),
      version: fc.integer({ min: 1, max: 3 }),
      image: fc.constantFrom(...IMAGES),
      update: fc.constantFrom("start-first" as const, "stop-first" as const),
    }),
    { selector: (spec) => spec.workload, maxLength: 2 },
  )
  .map((list) =>
    list.map(
      ({ workload, version, image, update }): WorkloadSpec =>
        aSpec({
          workloadId: `wkl_${workload}`,
          name: workload,
          image,
          update,
          // A real hash covers all other fields.
          specHash: `${version}${IMAGES.indexOf(image)}${update === "start-first" ? 1 : 0}`.padEnd(64, "0"),
        }),
    ),
  );

const failures: RuntimeCall[] = ["list", "image", "pull", "create", "start", "stop", "remove"];
const happening = fc.oneof(
  { weight: 4, arbitrary: fc.record({ is: fc.constant("wait" as const), ms: fc.integer({ min: 0, max: 60_000 }) }) },
  { weight: 3, arbitrary: fc.record({ is: fc.constant("desire" as const), specs }) },
  { weight: 2, arbitrary: fc.record({ is: fc.constant("crash" as const), pick: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ is: fc.constant("vanish" as const), pick: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.record({ is: fc.constant("away" as const), away: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({ is: fc.constant("sick" as const), image: fc.constantFrom(...IMAGES), sick: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ is: fc.constant("unpull" as const), image: fc.constantFrom(...IMAGES) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      is: fc.constant("fail" as const),
      call: fc.constantFrom(...failures),
      kind: fc.constantFrom("rejected" as const, "unavailable" as const, "conflict" as const),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ is: "restart" as const }) },
);
type Happening = typeof happening extends fc.Arbitrary<infer T> ? T : never;

class History {
  readonly machine = new Machine();
  desired: DesiredState = aDesiredState({ generation: 0, workloads: [] });
  /** Update strategies requested since the workload was last stable. */
  readonly #startFirst = new Set<string>();
  readonly violations: string[] = [];

  constructor(delays: readonly number[]) {
    let calls = 0;
    const { runtime, time } = this.machine;
    const changing = new Set<string>();
    runtime.delay = async (call, name) => {
      const workload = /-([xy])-/.exec(name)?.[1];
      if (call !== "list" && workload !== undefined) {
        if (changing.has(workload)) this.violations.push(`two changes of ${workload} at once`);
        changing.add(workload);
      }
      await sleep(time, delays[calls++ % delays.length] ?? 0);
      if (call !== "list" && workload !== undefined) changing.delete(workload);
    };
    for (const image of IMAGES) this.machine.runtime.registry.add(image);
    for (const foreign of FOREIGN) this.machine.runtime.plant({ ...foreign, state: "running" });
    this.machine.runtime.watch(OWNER, () => this.check(), new AbortController().signal);
    this.machine.startDaemon(this.desired);
  }

  async apply(event: Happening): Promise<void> {
    const { runtime, time, sick } = this.machine;
    const own = runtime.all().filter((container) => isOwned(container, OWNER));
    switch (event.is) {
      case "wait":
        return time.advance(event.ms);
      case "desire":
        return this.desire(event.specs);
      case "crash":
        return runtime.end(own[event.pick % own.length]?.name ?? "", 1);
      case "vanish":
        return runtime.vanish(own[event.pick % own.length]?.name ?? "");
      case "away":
        runtime.available = !event.away;
        return;
      case "sick":
        if (event.sick) sick.add(event.image);
        else sick.delete(event.image);
        return;
      case "unpull":
        return runtime.loseImage(event.image);
      case "fail":
        return runtime.failNext(event.call, new RuntimeError(event.kind, "a fault"));
      case "restart":
        await this.machine.stopDaemon();
        this.machine.startDaemon(this.desired);
    }
  }

  desire(workloads: WorkloadSpec[]): void {
    for (const spec of workloads) if (spec.update === "start-first") this.#startFirst.add(spec.workloadId);
    this.desired = aDesiredState({ generation: this.desired.generation + 1, workloads });
    this.machine.loop.desiredChanged(this.desired);
  }

  /** Checks invariants. Violations are recorded, because the loop would catch thrown errors. */
  check(): void {
    const own = this.machine.runtime.all().filter((container) => isOwned(container, OWNER));
    for (const workloadId of ["wkl_x", "wkl_y"]) {
      const containers = own.filter((container) => containerWorkload(container) === workloadId);
      const specsThere = containers.map((container) => container.labels[LABELS.spec]);
      if (new Set(specsThere).size < specsThere.length)
        this.violations.push(`two containers of one spec: ${workloadId}`);
      const running = containers.filter((container) => container.state === "running").length;
      const allowed = this.#startFirst.has(workloadId) ? 2 : 1;
      if (running > allowed) this.violations.push(`${running} of ${workloadId} run at once`);
    }
    for (const { name } of FOREIGN) {
      if (this.machine.runtime.byName(name)?.state !== "running") this.violations.push(`${name} was touched`);
    }
  }

  /** Ends all faults and advances time. */
  async heal(): Promise<void> {
    const { runtime, sick, time } = this.machine;
    runtime.available = true;
    sick.clear();
    runtime.forgetFailures();
    // A failed spec is not retried until the desired state changes.
    this.desire(this.desired.workloads.map((spec) => ({ ...spec, specHash: `f${spec.specHash.slice(1)}` })));
    await time.advance(20 * 60_000);
  }
}

test("every history ends with exactly the wanted workloads, running and ready", { timeout: 120_000 }, async () => {
  const delays = fc.array(fc.constantFrom(0, 50, 1000, 4000), { minLength: 1, maxLength: 20 });
  const property = fc.asyncProperty(
    fc.array(happening, { minLength: 1, maxLength: 25 }),
    delays,
    async (events, slow) => {
      const history = new History(slow);
      for (const event of events) await history.apply(event);
      await history.heal();
      const { runtime, snapshot } = history.machine;
      const own = runtime.all().filter((container) => isOwned(container, OWNER));
      expect(own.map((container) => container.name).toSorted()).toEqual(
        history.desired.workloads.map((spec) => containerName(OWNER.nodeId, spec)).toSorted(),
      );
      for (const container of own) {
        expect(container.state).toBe("running");
        expect(snapshot?.health(container).state).toBe("ready");
      }
      history.check();
      expect(history.violations).toEqual([]);
      // A create based on an outdated snapshot.
      expect(history.machine.events.filter((event) => event.includes("is in use"))).toEqual([]);
      expect(history.machine.events.filter((event) => event.includes("is in use"))).toEqual([]);
      await history.machine.stopDaemon();
    },
  );
  await fc.assert(property, { numRuns: 60, seed: 20260101 });
});
