import {
  type Machine,
  type MachinePlan,
  type MachineProvider,
  type MachineRequest,
  ProviderRefusal,
} from "./machine-provider.ts";

export const GOOD_TOKEN = "provider-token-that-nobody-may-see";
const PRICE = { amount: "3.50", currency: "EUR" };

export interface MemoryFaults {
  /** Places without capacity, although the plan shows it. */
  full: readonly string[];
  /** How many accepted machines fail later. */
  failLater: number;
  /** How many lists do not know a new machine yet. */
  hiddenFromLists: number;
  /** How many reads show a machine without an address. */
  slowAddress: number;
  /** The machine that cannot be removed now. */
  locked: string;
  /** What every call is refused by. */
  refusal: ProviderRefusal | null;
}

interface Kept {
  readonly request: MachineRequest;
  readonly owner: MemoryMachines;
  machine: Machine;
  hidden: number;
  slow: number;
}

/** Of one customer of the provider, whatever installations it has. */
interface Account {
  readonly kept: Map<string, Kept>;
  made: number;
}

/** A provider in memory, with faults by script. Every look brings a machine one step on. */
export class MemoryMachines implements MachineProvider {
  readonly name = "memory";
  readonly needsToken = true;
  readonly maxUserDataBytes = 32 * 1024;
  readonly tokens = new Set([GOOD_TOKEN]);
  readonly calls: string[] = [];
  readonly faults: MemoryFaults = {
    full: [],
    failLater: 0,
    hiddenFromLists: 0,
    slowAddress: 0,
    locked: "",
    refusal: null,
  };
  /** Runs once a call has been carried out, before it is answered: what happens meanwhile. */
  meanwhile: ((call: string) => Promise<void>) | null = null;
  readonly #now: () => number;
  readonly #account: Account;

  /** @param neighbour another installation with the same account */
  constructor(now: () => number, neighbour?: MemoryMachines) {
    this.#now = now;
    this.#account = neighbour === undefined ? { kept: new Map(), made: 0 } : neighbour.#account;
  }

  get kept(): Map<string, Kept> {
    return this.#account.kept;
  }

  /** That cost money. */
  get living(): readonly Kept[] {
    return [...this.kept.values()];
  }

  async checkToken(token: string): Promise<void> {
    this.#begin("checkToken", token);
    if (token === "read-only") throw refusal("read_only_token", "token is only allowed to read");
    if (!this.tokens.has(token)) throw refusal("bad_token", "unable to authenticate");
  }

  async plans(token: string | null): Promise<readonly MachinePlan[]> {
    this.#begin("plans", token ?? "");
    const locations = ["north", "south", "west"].map((name) => ({
      name,
      available: name !== "west",
      monthlyPrice: PRICE,
      hourlyPrice: null,
    }));
    return [{ type: "m1", cores: 2, memoryMb: 4096, diskGb: 40, gpu: null, locations }];
  }

  async create(token: string, request: MachineRequest): Promise<Machine> {
    this.#begin("create", token);
    if (request.type !== "m1" || !["north", "south", "west"].includes(request.location)) {
      throw refusal("bad_input", "unsupported");
    }
    if (Buffer.byteLength(request.userData) > this.maxUserDataBytes) throw refusal("bad_input", "user data too long");
    if (this.living.some((one) => one.request.name === request.name)) throw refusal("already_exists", "name is used");
    if (this.faults.full.includes(request.location)) throw refusal("no_capacity", `${request.location} is full`);
    const id = String(++this.#account.made);
    const { label, location } = request;
    const machine: Machine = { id, label, state: "pending", ip: null, location, createdAt: this.#now(), failure: null };
    const { hiddenFromLists: hidden, slowAddress: slow } = this.faults;
    this.kept.set(id, { request, owner: this, machine, hidden, slow });
    await this.meanwhile?.("create");
    return machine;
  }

  async get(token: string, machineId: string): Promise<Machine | null> {
    this.#begin("get", token);
    const one = this.#own(machineId);
    if (one === undefined) return null;
    if (one.machine.state === "stopping") {
      this.kept.delete(machineId);
      return null;
    }
    this.#bringOn(one);
    await this.meanwhile?.("get");
    return one.machine;
  }

  async delete(token: string, machineId: string): Promise<void> {
    this.#begin("delete", token);
    if (this.faults.locked === machineId) throw refusal("unavailable", "it is locked");
    const one = this.#own(machineId);
    if (one !== undefined) one.machine = { ...one.machine, state: "stopping" };
  }

  async findByLabel(token: string, label: string | null): Promise<readonly Machine[]> {
    this.#begin("findByLabel", token);
    const own = this.living.filter(({ owner }) => owner === this);
    const found = own.filter((one) => label === null || one.machine.label === label);
    const seen = found.filter((one) => one.hidden-- <= 0);
    for (const { machine } of seen) if (machine.state === "stopping") this.kept.delete(machine.id);
    return seen.map(({ machine }) => machine);
  }

  #own(machineId: string): Kept | undefined {
    const one = this.kept.get(machineId);
    return one?.owner === this ? one : undefined;
  }

  #bringOn(one: Kept): void {
    if (one.machine.state !== "pending" && one.machine.ip !== null) return;
    if (one.machine.state === "pending" && this.faults.failLater > 0) {
      this.faults.failLater -= 1;
      one.machine = { ...one.machine, state: "failed", failure: "no host was found" };
      return;
    }
    if (one.machine.state === "failed") return;
    const ip = one.slow-- <= 0 ? "192.0.2.20" : null;
    one.machine = { ...one.machine, state: "running", ip };
  }

  #begin(call: string, token: string): void {
    this.calls.push(call);
    if (this.faults.refusal !== null) throw this.faults.refusal;
    if (call !== "checkToken" && !this.tokens.has(token)) throw refusal("bad_token", "unable to authenticate");
  }
}

export function refusal(kind: ProviderRefusal["kind"], providerWords: string): ProviderRefusal {
  return new ProviderRefusal({ kind, providerWords });
}
