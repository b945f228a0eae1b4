import type { DesiredState, WorkloadSpec } from "@fairlead/protocol/workload";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Container, ImageFacts, Network } from "../../runtime/container-runtime.ts";
import {
  containerName,
  containerWorkload,
  isOwned,
  networkName,
  ownershipLabels,
  specHashOf,
} from "../../runtime/ownership.ts";
import { aDesiredState, aSpec, OWNER } from "../../testing/builders.ts";
import type { HealthStatus } from "../health.ts";
import type { Observed } from "../observe.ts";
import { type PlanInput, plan } from "./plan.ts";
import { type RunRecords, updateRecords } from "./run-record.ts";
import type { Step } from "./steps.ts";

/**
 * Tests the planner against arbitrary snapshots of a machine. A model of the container engine
 * executes the steps, with faults, and the planner runs again.
 */

const STATES: Container["state"][] = [
  "created",
  "running",
  "paused",
  "restarting",
  "removing",
  "exited",
  "dead",
  "unknown",
];
const WORKLOADS = ["x", "y"];
const VERSIONS = ["1", "2", "3"];
const IMAGE: ImageFacts = {
  id: "sha256:i",
  repoDigests: [],
  labels: {},
  tags: [],
  start: { entrypoint: [], command: [] },
};

function specOf(workload: string, version: string, update: WorkloadSpec["update"]): WorkloadSpec {
  return aSpec({ workloadId: `wkl_${workload}`, name: workload, update, specHash: version.padEnd(64, "0") });
}

const updates = fc.constantFrom("start-first" as const, "stop-first" as const);
const desiredStates = fc
  .uniqueArray(
    fc.record({ workload: fc.constantFrom(...WORKLOADS), version: fc.constantFrom(...VERSIONS), update: updates }),
    {
      selector: ({ workload }) => workload,
      maxLength: 2,
    },
  )
  .map((list) =>
    aDesiredState({ workloads: list.map(({ workload, version, update }) => specOf(workload, version, update)) }),
  );

/** Includes states that no daemon creates: two specs under one name, an unknown workload, a foreign container with a desired name. */
const pieces = fc.uniqueArray(
  fc.record({
    workload: fc.constantFrom(...WORKLOADS, "gone"),
    version: fc.constantFrom(...VERSIONS),
    named: fc.constantFrom(...VERSIONS),
    state: fc.constantFrom(...STATES),
    healthy: fc.boolean(),
    ran: fc.boolean(),
    refused: fc.boolean(),
    foreign: fc.boolean(),
    generation: fc.nat(3),
    network: fc.constantFrom("own", "own", "lost"),
  }),
  { selector: ({ workload, named }) => `${workload} ${named}`, maxLength: 6 },
);
type Piece = typeof pieces extends fc.Arbitrary<(infer T)[]> ? T : never;

/** One fault per initial step: it fails, its response is lost, or its container exits immediately. */
const faults = fc.array(fc.constantFrom("none", "none", "fails", "lost", "crashes"), { maxLength: 30 });

class Model {
  now = 1_000_000;
  containers: Container[];
  readonly foreign: Container[];
  networks: ReadonlyMap<string, Network>;
  readonly #sick: Set<string>;
  readonly #inFlight = new Map<string, number>();
  #image: ImageFacts | null = null;
  #records: RunRecords = new Map();
  #serial = 0;

  constructor(list: readonly Piece[]) {
    const all = list.map((piece) => containerOf(piece));
    this.containers = all.filter((container) => isOwned(container, OWNER));
    this.foreign = all.filter((container) => !isOwned(container, OWNER));
    this.#sick = new Set(all.filter((_, index) => list[index]?.healthy === false).map(({ name }) => name));
    const networks = all.filter(({ network }) => !network.endsWith("lost")).map(networkFor);
    this.networks = new Map(networks.map((network) => [network.name, network]));
    for (const { id, name } of this.containers) this.#inFlight.set(id, this.#sick.has(name) ? 0 : 1);
  }

  plan(desired: DesiredState): ReturnType<typeof plan> & { readonly input: PlanInput } {
    const observed = this.#observed(desired);
    const health = (container: Container): HealthStatus => this.#health(container);
    const time = new Date(this.now).toISOString();
    this.#records = updateRecords(this.#records, { desired, observed, health, now: this.now, time }).records;
    const input: PlanInput = {
      desired,
      observed,
      records: this.#records,
      health,
      inFlight: ({ id }) => this.#inFlight.get(id) ?? 0,
      missingSecrets: () => [],
      now: this.now,
    };
    return { ...plan(input), input };
  }

  execute(step: Step, fault: string): void {
    if (step.type === "stop") this.#remember(step);
    if (fault === "fails") return;
    if (step.type === "pull") this.#image = IMAGE;
    else if (step.type === "create") this.#create(step);
    else if (step.type === "add-network")
      this.networks = new Map(this.networks).set(
        step.network,
        networkFor({ network: step.network, labels: { "dev.fairlead.workload": step.workloadId } }),
      );
    else if (step.type === "remove-network")
      this.networks = new Map([...this.networks].filter(([name]) => name !== step.network));
    else this.#change(step);
    if (fault === "crashes" && step.type === "start") this.#set(step.containerId, { state: "exited", exitCode: 1 });
  }

  /** External progress: removals finish, the engine reports everything again, paused containers resume, faults end. */
  heal(): void {
    this.#sick.clear();
    this.containers = this.containers
      .filter(({ state }) => state !== "removing")
      .map((container) => ({ ...container, state: HEALED[container.state] ?? container.state }));
    this.#inFlight.clear();
  }

  #remember({ name, reason }: Extract<Step, { type: "stop" }>): void {
    const record = this.#records.get(name);
    if (record) this.#records = new Map(this.#records).set(name, { ...record, stopping: { reason, detail: reason } });
  }

  #create({ name, spec, generation }: Extract<Step, { type: "create" }>): void {
    if ([...this.containers, ...this.foreign].some((container) => container.name === name)) return;
    const labels = ownershipLabels(OWNER, spec, generation);
    const network = networkName(OWNER.nodeId, spec);
    if (!this.networks.has(network)) throw new Error(`a create without the network ${network}`);
    this.containers = [...this.containers, { ...BLANK, id: `new-${this.#serial++}`, name, labels, network }];
  }

  #change(step: Extract<Step, { containerId: string }>): void {
    const container = this.containers.find(({ id }) => id === step.containerId);
    if (step.type === "remove") this.containers = this.containers.filter((other) => other !== container);
    if (step.type === "stop") this.#set(step.containerId, { state: "exited", exitCode: 143, hostPort: null });
    if (step.type === "start")
      this.#set(step.containerId, {
        state: "running",
        hostPort: 1,
        startedAt: new Date(this.now + this.#serial++).toISOString(),
      });
  }

  #set(id: string, changes: Partial<Container>): void {
    this.containers = this.containers.map((other) => (other.id === id ? { ...other, ...changes } : other));
  }

  #observed({ workloads }: DesiredState): Observed {
    const names = new Set(workloads.map((spec) => containerName(OWNER.nodeId, spec)));
    const foreign = this.foreign.filter(({ name }) => names.has(name));
    const holders = new Map(foreign.map((container) => [container.name, container]));
    return {
      containers: this.containers,
      networks: this.networks,
      foreign: holders,
      images: new Map([[aSpec().image, this.#image]]),
    };
  }

  #health({ name, state }: Container): HealthStatus {
    const is = state !== "running" ? "starting" : this.#sick.has(name) ? "unhealthy" : "ready";
    return { state: is, detail: is, version: "", models: [] };
  }
}

const HEALED: Partial<Record<Container["state"], Container["state"]>> = {
  unknown: "exited",
  paused: "running",
  restarting: "running",
};

const BLANK: Container = {
  id: "",
  name: "",
  labels: {},
  state: "created",
  image: aSpec().image,
  imageId: IMAGE.id,
  network: "bridge",
  hostPort: null,
  startedAt: null,
  finishedAt: null,
  exitCode: 0,
  outOfMemory: false,
  error: "",
};

function containerOf(piece: Piece): Container {
  const spec = specOf(piece.workload, piece.version, "stop-first");
  const owner = piece.foreign ? { ...OWNER, nodeId: "nod_theirs" } : OWNER;
  const named = specOf(piece.workload, piece.named, "stop-first");
  return {
    ...BLANK,
    id: `old-${piece.workload}-${piece.named}`,
    name: containerName(OWNER.nodeId, named),
    labels: ownershipLabels(owner, spec, piece.generation),
    network: networkOf(piece, spec),
    state: piece.state,
    hostPort: piece.state === "running" ? 1 : null,
    startedAt: piece.ran || piece.state === "running" ? "2026-01-01T00:00:00.000Z" : null,
    error: piece.refused && piece.state === "created" ? "no such file" : "",
  };
}

function networkOf({ network, state }: Piece, spec: WorkloadSpec): string {
  // A network in use is not removed.
  const canBeLost = network === "lost" && state !== "running" && state !== "paused" && state !== "restarting";
  return `${networkName(OWNER.nodeId, spec)}${canBeLost ? "-lost" : ""}`;
}

function networkFor({ network, labels }: Pick<Container, "network" | "labels">): Network {
  const workloadId = labels["dev.fairlead.workload"] ?? "";
  return { id: `id of ${network}`, name: network, workloadId, gateway: "198.19.0.1", subnet: "198.19.0.0/29" };
}

/** Invariants of a round. */
function judge({ steps, input }: ReturnType<Model["plan"]>): void {
  const own = new Map(input.observed.containers.map((container) => [container.id, container]));
  const changes = steps.filter((step) => step.type !== "pull");
  const changed = changes.map((step) => step.workloadId);
  expect(new Set(changed).size, "two changes of one workload at once").toBe(
    changed.length - orphansIn(changes, own, input),
  );
  for (const step of changes) {
    if (step.type === "add-network") continue;
    if (step.type === "remove-network") {
      const used = input.observed.containers.some(({ network }) => network === step.network);
      expect(used, "a network goes that a container has").toBe(false);
      continue;
    }
    if (step.type === "create") {
      expect(input.observed.foreign.has(step.name), "a create under a stranger's name").toBe(false);
      continue;
    }
    const container = own.get(step.containerId);
    if (container === undefined) throw new Error(`${step.type} of what is not ours: ${step.name}`);
    if (step.type === "start")
      expect(input.observed.networks.has(container.network), "a start without its network").toBe(true);
    expect(["unknown", "removing"], "a change of what is uncertain").not.toContain(container.state);
    if (step.type === "remove") expect(["running", "paused", "restarting"]).not.toContain(container.state);
  }
}

/** Several containers of an unwanted workload may be removed at once. */
function orphansIn(changes: readonly Step[], own: ReadonlyMap<string, Container>, { desired }: PlanInput): number {
  const wanted = new Set(desired.workloads.map(({ workloadId }) => workloadId));
  const orphans = changes.filter(
    (step) => "containerId" in step && !wanted.has(containerWorkload(own.get(step.containerId) ?? BLANK)),
  );
  return orphans.length - new Set(orphans.map(({ workloadId }) => workloadId)).size;
}

function running(model: Model, workloadId: string): number {
  return model.containers.filter((c) => containerWorkload(c) === workloadId && c.state === "running").length;
}

const ROUNDS = 200;

function run(model: Model, desired: DesiredState, fault: (step: Step) => string): boolean {
  for (let round = 0; round < ROUNDS; round++) {
    const planned = model.plan(desired);
    judge(planned);
    const before = new Map(desired.workloads.map(({ workloadId }) => [workloadId, running(model, workloadId)]));
    for (const step of planned.steps) model.execute(step, fault(step));
    for (const { workloadId, update } of desired.workloads) {
      const most = Math.max(update === "start-first" ? 2 : 1, before.get(workloadId) ?? 0);
      expect(running(model, workloadId), "more run than an update needs").toBeLessThanOrEqual(most);
    }
    if (planned.steps.length === 0 && planned.wakeAt === null) return true;
    if (planned.steps.length === 0) model.now = Math.max(model.now, planned.wakeAt ?? 0);
    else model.now += 10;
  }
  return false;
}

test("planning converges to the desired state from any state and through any faults", { timeout: 60_000 }, () => {
  const property = fc.property(desiredStates, pieces, faults, (desired, list, script) => {
    const model = new Model(list);
    const strangers = structuredClone(model.foreign);
    const left = [...script];
    run(model, desired, () => left.shift() ?? "none");
    model.heal();
    // Specs that failed because of faults are retried as a new spec, like users would.
    const next = aDesiredState({
      generation: 9,
      workloads: desired.workloads.map((spec) => ({ ...spec, specHash: `9${spec.specHash.slice(1)}` })),
    });
    expect(
      run(model, next, () => "none"),
      "it never comes to rest",
    ).toBe(true);
    expect(model.foreign).toEqual(strangers);
    expect(model.containers.map(({ name }) => name).toSorted()).toEqual(
      next.workloads.map((spec) => containerName(OWNER.nodeId, spec)).toSorted(),
    );
    expect(model.containers.every(({ state }) => state === "running")).toBe(true);
    expect([...model.networks.keys()].toSorted()).toEqual(
      next.workloads.map((spec) => networkName(OWNER.nodeId, spec)).toSorted(),
    );
    expect(model.containers.map(({ network }) => network).toSorted()).toEqual(
      next.workloads.map((spec) => networkName(OWNER.nodeId, spec)).toSorted(),
    );
    expect(model.containers.map(specHashOf).toSorted()).toEqual(next.workloads.map((spec) => spec.specHash).toSorted());
  });
  fc.assert(property, { numRuns: 1000, seed: 20261128 });
});

test("without faults, any state leads to the wanted container or the one that served before, without a new spec", {
  timeout: 60_000,
}, () => {
  const property = fc.property(desiredStates, pieces, (desired, list) => {
    const model = new Model(list);
    const names = new Set(desired.workloads.map((spec) => containerName(OWNER.nodeId, spec)));
    model.heal();
    expect(
      run(model, desired, () => "none"),
      "it never comes to rest",
    ).toBe(true);
    for (const { workloadId, name, specHash } of desired.workloads) {
      const blocked = model.foreign.some(
        (container) => container.name === containerName(OWNER.nodeId, { name, specHash }),
      );
      if (!blocked) expect(running(model, workloadId)).toBe(1);
    }
    const stray = model.containers.filter(({ name, labels }) => !names.has(name) && !labels["dev.fairlead.workload"]);
    expect(stray).toEqual([]);
  });
  fc.assert(property, { numRuns: 1000, seed: 7 });
});
