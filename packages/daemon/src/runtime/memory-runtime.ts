import type { Clock } from "@fairlead/protocol/values/clock";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import {
  type Container,
  type ContainerPlan,
  type ContainerRuntime,
  type ImageFacts,
  type LogLine,
  type LogOptions,
  type Network,
  type NetworkPlan,
  type Owner,
  type ProcessCount,
  type PullOptions,
  RuntimeError,
  type RuntimeVersion,
} from "./container-runtime.ts";
import { isOwned, networkName, ownershipLabels } from "./ownership.ts";

export type RuntimeCall =
  | "networks"
  | "addNetwork"
  | "removeNetwork"
  | "list"
  | "image"
  | "pull"
  | "create"
  | "start"
  | "stop"
  | "remove"
  | "removeImage";

/** In-memory container engine for tests. Follows Docker's rules for names, states and idempotency; can inject failures. */
export class MemoryRuntime implements ContainerRuntime {
  readonly #clock: Clock;
  readonly #containers = new Map<string, Container>();
  readonly #networks = new Map<string, Network & { readonly owner: Owner }>();
  readonly #images = new Map<string, ImageFacts>();
  readonly #watchers = new Set<() => void>();
  readonly #failures: { call: RuntimeCall; error: RuntimeError }[] = [];
  readonly #onStart = new Map<string, number>();
  readonly #commands = new Map<string, string>();
  #serial = 0;
  id = "memory";
  /** If false, every call fails. */
  available = true;
  /** Images in the registry. */
  readonly registry = new Set<string>();
  /** Users of images, by reference; default root. */
  readonly users = new Map<string, number>();
  /** By image. */
  readonly processCounts = new Map<string, ProcessCount>();
  /** Plans of all created containers, in order. */
  readonly created: ContainerPlan[] = [];
  /** All executed changes, in order: `start fairlead-…`. */
  readonly changes: string[] = [];
  /** Credentials of each pull, in order; null for anonymous. */
  readonly pulledAs: (string | null)[] = [];
  /** Percentages that a pull reports. */
  progress: readonly number[] = [50];
  /** Remaining bytes that a pull reports. */
  pendingBytes = 0;
  /** Blocks pulls until resolved. */
  pullGate: Promise<void> = Promise.resolve();
  /** Delays the effect of a call; a list shows the state before it. */
  delay: (call: RuntimeCall, name: string) => Promise<void> = () => Promise.resolve();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  addImage(reference: string, facts: Partial<ImageFacts> = {}): void {
    this.#images.set(reference, {
      id: `sha256:${reference}`,
      repoDigests: [],
      labels: {},
      start: { entrypoint: [], command: [] },
      tags: [reference],
      ...facts,
    });
  }

  loseImage(reference: string): void {
    this.#images.delete(reference);
  }

  /** Containers of this image always exit immediately with this code. */
  crashOnStart(reference: string, code: number | null): void {
    if (code === null) this.#onStart.delete(reference);
    else this.#onStart.set(reference, code);
  }

  /** Containers with this command always exit immediately with this code. */
  crashOnCommand(command: readonly string[], code: number): void {
    this.#onStart.set(command.join(" "), code);
  }

  failNext(call: RuntimeCall, error: RuntimeError): void {
    this.#failures.push({ call, error });
  }

  forgetFailures(): void {
    this.#failures.length = 0;
  }

  /** Makes a container exit. */
  end(name: string, code: number): void {
    const container = this.byName(name);
    if (container)
      this.#put({
        ...container,
        state: "exited",
        exitCode: code,
        hostPort: null,
        finishedAt: rfc3339(this.#clock.now()),
      });
  }

  /** Adds a foreign container. */
  plant(container: Partial<Container> & { readonly name: string }): Container {
    const planted = { ...this.#blank(container.name), ...container };
    this.#put(planted);
    return planted;
  }

  vanish(name: string): void {
    const container = this.byName(name);
    if (container) this.#containers.delete(container.id);
  }

  all(): Container[] {
    return [...this.#containers.values()];
  }

  byName(name: string): Container | undefined {
    return this.all().find((container) => container.name === name);
  }

  async version(): Promise<RuntimeVersion> {
    this.#ask();
    return { id: this.id, version: "memory", rootFolder: "/", usesProxy: false };
  }

  async networks(owner: Owner): Promise<Network[]> {
    this.#ask("networks");
    return [...this.#networks.values()].filter(
      (network) => network.owner.nodeId === owner.nodeId && network.owner.installationId === owner.installationId,
    );
  }

  async addNetwork({ name, owner, workloadId }: NetworkPlan): Promise<void> {
    this.#ask("addNetwork");
    if ([...this.#networks.values()].some((network) => network.name === name)) return;
    const id = `net-${this.#serial++}`;
    const third = this.#serial % 256;
    const addresses = { gateway: `198.19.${third}.1`, subnet: `198.19.${third}.0/29` };
    this.#networks.set(id, { id, name, workloadId, owner, ...addresses });
    this.#changed(`add network ${name}`);
  }

  async removeNetwork(id: string): Promise<void> {
    this.#ask("removeNetwork");
    const network = this.#networks.get(id);
    if (!network) return;
    if (this.all().some((container) => container.network === network.name && container.state === "running"))
      throw new RuntimeError("rejected", `network ${network.name} has active endpoints`);
    this.#networks.delete(id);
    this.#changed(`remove network ${network.name}`);
  }

  /** Removes unused networks, like `docker network prune`. */
  pruneNetworks(): void {
    const used = new Set(this.all().flatMap(({ state, network }) => (state === "running" ? [network] : [])));
    for (const { id, name } of this.#networks.values()) if (!used.has(name)) this.#networks.delete(id);
  }

  async list(owner: Owner): Promise<Container[]> {
    this.#ask("list");
    const containers = this.all().filter((container) => isOwned(container, owner));
    await this.delay("list", "");
    return containers;
  }

  async inspect(nameOrId: string): Promise<Container | null> {
    this.#ask();
    return this.#containers.get(nameOrId) ?? this.byName(nameOrId) ?? null;
  }

  async image(reference: string): Promise<ImageFacts | null> {
    this.#ask("image");
    return this.#images.get(reference) ?? [...this.#images.values()].find((image) => image.id === reference) ?? null;
  }

  async pull(reference: string, options: PullOptions): Promise<void> {
    this.#ask("pull");
    this.pulledAs.push(options.credentials?.username ?? null);
    for (const percent of this.progress) options.onProgress({ percent, pendingBytes: this.pendingBytes });
    const aborted = Promise.withResolvers<never>();
    options.signal.addEventListener("abort", () =>
      aborted.reject(new RuntimeError("pull-failed", "the pull was cancelled")),
    );
    await Promise.race([this.pullGate, aborted.promise]);
    if (!this.registry.has(reference)) throw new RuntimeError("pull-failed", `${reference} was not found`);
    this.addImage(reference);
    this.#changed(`pull ${reference}`);
  }

  async imagesInUse(): Promise<ReadonlySet<string>> {
    this.#ask("list");
    return new Set(this.all().map((container) => container.imageId));
  }

  async removeImage(reference: string): Promise<void> {
    this.#ask("removeImage");
    const image = await this.image(reference);
    if (image === null) return;
    const names = [...this.#images].filter(([, { id }]) => id === image.id).map(([name]) => name);
    const last = names.length === 1 || reference === image.id;
    if (last && this.all().some((container) => container.imageId === image.id)) {
      throw new RuntimeError("conflict", `${reference} is being used`);
    }
    for (const name of reference === image.id ? names : [reference]) this.#images.delete(name);
    this.#changed(`remove image ${reference}`);
  }

  async create(plan: ContainerPlan): Promise<string> {
    this.#ask("create");
    await this.delay("create", plan.name);
    if (this.byName(plan.name)) throw new RuntimeError("conflict", `the name ${plan.name} is in use`);
    const image = this.#images.get(plan.spec.image);
    if (!image) throw new RuntimeError("no-such-image", `no such image: ${plan.spec.image}`);
    const network = networkName(plan.owner.nodeId, plan.spec);
    if (![...this.#networks.values()].some(({ name }) => name === network))
      throw new RuntimeError("not-found", `network ${network} not found`);
    const labels = ownershipLabels(plan.owner, plan.spec, plan.generation);
    const container = { ...this.#blank(plan.name), labels, network, image: plan.spec.image, imageId: image.id };
    this.#put(container);
    this.#commands.set(container.id, plan.spec.command.join(" "));
    this.created.push(plan);
    this.#changed(`create ${plan.name}`);
    return container.id;
  }

  async processes(id: string): Promise<ProcessCount | null> {
    this.#ask();
    return this.processCounts.get(this.#get(id).image) ?? null;
  }

  async userOf(id: string): Promise<number> {
    this.#ask();
    return this.users.get(this.#get(id).image) ?? 0;
  }

  async start(id: string): Promise<void> {
    try {
      this.#ask("start");
    } catch (error) {
      // Docker stores the start error in the container.
      if (error instanceof RuntimeError && error.kind === "rejected")
        this.#put({ ...this.#get(id), error: error.message });
      throw error;
    }
    await this.delay("start", this.#get(id).name);
    const container = this.#get(id);
    if (container.network !== "bridge" && ![...this.#networks.values()].some(({ name }) => name === container.network))
      throw new RuntimeError("not-found", `network ${container.network} not found`);
    if (container.state === "running") return;
    this.#put({
      ...container,
      state: "running",
      error: "",
      startedAt: rfc3339(this.#clock.now() + this.#serial++),
      hostPort: 30_000 + this.#serial,
    });
    this.#changed(`start ${container.name}`);
    const code = this.#onStart.get(container.image) ?? this.#onStart.get(this.#commands.get(id) ?? "");
    if (code !== undefined) this.end(container.name, code);
  }

  async stop(id: string): Promise<void> {
    this.#ask("stop");
    const container = this.#get(id);
    if (container.state !== "running") return;
    await this.delay("stop", container.name);
    this.end(container.name, 143);
    this.#changed(`stop ${container.name}`);
  }

  async remove(id: string): Promise<void> {
    this.#ask("remove");
    await this.delay("remove", this.#containers.get(id)?.name ?? "");
    const container = this.#containers.get(id);
    if (!container) return;
    if (container.state === "running") throw new RuntimeError("conflict", `${container.name} is running`);
    this.#containers.delete(id);
    this.#changed(`remove ${container.name}`);
  }

  async logs(id: string): Promise<string> {
    this.#ask();
    return `output of ${this.#get(id).name}\n`;
  }

  async *followLogs(id: string, { tail }: LogOptions, signal: AbortSignal): AsyncIterable<LogLine> {
    this.#ask();
    if (signal.aborted) return;
    const line = { at: rfc3339(this.#clock.now()), stream: "stdout", text: `output of ${this.#get(id).name}` } as const;
    if (tail !== 0) yield line;
  }

  watch(_owner: Owner, onChange: () => void, signal: AbortSignal): void {
    this.#watchers.add(onChange);
    signal.addEventListener("abort", () => this.#watchers.delete(onChange), { once: true });
    queueMicrotask(onChange);
  }

  #ask(call?: RuntimeCall): void {
    if (!this.available) throw new RuntimeError("unavailable", "the container engine does not respond");
    const index = this.#failures.findIndex((failure) => failure.call === call);
    const [failure] = index < 0 ? [] : this.#failures.splice(index, 1);
    if (failure) throw failure.error;
  }

  #get(id: string): Container {
    const container = this.#containers.get(id);
    if (!container) throw new RuntimeError("not-found", `no such container: ${id}`);
    return container;
  }

  #put(container: Container): void {
    this.#containers.set(container.id, container);
    for (const watcher of this.#watchers) watcher();
  }

  #changed(change: string): void {
    this.changes.push(change);
    for (const watcher of this.#watchers) watcher();
  }

  #blank(name: string): Container {
    return {
      id: `id-${this.#serial++}`,
      name,
      labels: {},
      state: "created",
      image: "",
      imageId: "",
      network: "bridge",
      hostPort: null,
      startedAt: null,
      finishedAt: null,
      exitCode: 0,
      outOfMemory: false,
      error: "",
    };
  }
}
