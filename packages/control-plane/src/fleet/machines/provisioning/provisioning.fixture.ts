import { pino } from "pino";
import { memorySealer } from "../../../access/auth/sealing/memory-sealer.ts";
import type { OpenStore } from "../../../testing.fixture.ts";
import type { NodeMachineService } from "../../nodes/actions/node-machine-service.ts";
import { type NodeFixture, NodeKey, nodeFixture, ORIGIN, OWNER, PROJECT } from "../../nodes/node.fixture.ts";
import type { NodeRecord } from "../../nodes/node.ts";
import type { MachineProvider } from "../machine-provider.ts";
import {
  createMachineOrders,
  createMachineServices,
  type MachineOrders,
  type MachineServices,
} from "../machine-room.ts";
import { GOOD_TOKEN, MemoryMachines } from "../memory-machines.fixture.ts";

/** The program died here; nothing that it would have done happens. */
export class Died extends Error {}

/** Dies at one of the places at which a program can: before and after each call of the provider and each transaction. */
export class Mortal {
  #left = Number.POSITIVE_INFINITY;
  #dead = false;
  /** Places that were passed. */
  passed = 0;

  dieAfter(places: number): void {
    this.#left = places;
    this.#dead = false;
  }

  wrap<A extends readonly unknown[], T>(work: (...args: A) => Promise<T>): (...args: A) => Promise<T> {
    return async (...args) => {
      this.#pass();
      const result = await work(...args);
      this.#pass();
      return result;
    };
  }

  #pass(): void {
    this.passed += 1;
    if (this.#left-- <= 0) this.#dead = true;
    if (this.#dead) throw new Died("the process died");
  }
}

export interface ProvisioningFixture extends MachineOrders, MachineServices {
  readonly fixture: NodeFixture;
  readonly provider: MemoryMachines;
  readonly mortal: Mortal;
  create(changes?: { readonly location?: string; readonly name?: string }): Promise<NodeRecord>;
  /** Goes on until nothing is left to do, with a new program after each death. Machines that run enrol. @returns how often it died. */
  settle(nodeId: string, options?: SettleOptions): Promise<number>;
}

export interface SettleOptions {
  /** After how many places each life ends; after the last one it lives on. */
  readonly deaths?: readonly number[];
  /** Before so many steps the node is deleted. */
  readonly deleteAt?: number;
  readonly enrol?: boolean;
}

const MAX_STEPS = 3000;

export async function provisioningFixture(open?: OpenStore): Promise<ProvisioningFixture> {
  const { fixture, rooms, provider } = await openRooms(open);
  const mortal = new Mortal();
  const { access, audit, clock } = fixture;
  const log = pino({ level: "silent" });
  const live = (): MachineServices =>
    createMachineServices(
      { ...rooms, providers: [mortalProvider(provider, mortal)] },
      { access, audit, log, nodes: mortalNodes(fixture.nodeMachines, mortal) },
    );
  const made = live();
  return {
    ...rooms,
    ...made,
    fixture,
    provider,
    mortal,
    create: ({ location, name = "Rented" } = {}) =>
      fixture.nodes.create(OWNER, {
        projectId: PROJECT,
        planId: "memory:m1",
        name,
        location,
        providerToken: GOOD_TOKEN,
        directSecrets: false,
        engineConfig: null,
      }),
    settle: async (nodeId, { deaths = [], deleteAt, enrol = true } = {}) => {
      let { provisioning } = live();
      let died = 0;
      mortal.dieAfter(deaths[0] ?? Number.POSITIVE_INFINITY);
      for (let step = 0; step < MAX_STEPS; step += 1) {
        if (step === deleteAt) await fixture.nodeChanges.delete(OWNER, nodeId);
        let afterMs: number | null = 0;
        try {
          afterMs = await provisioning.advance(nodeId);
        } catch (error) {
          if (!(error instanceof Died)) throw error;
          died += 1;
          mortal.dieAfter(deaths[died] ?? Number.POSITIVE_INFINITY);
          ({ provisioning } = live());
        }
        if (enrol) await enrolRunning(fixture, provider);
        if (afterMs === null && (deleteAt === undefined || step >= deleteAt)) return died;
        clock.advance(Math.max(1, afterMs ?? 1));
      }
      throw new Error(`it does not settle: ${JSON.stringify(await rooms.machines.find(nodeId))}`);
    },
  };
}

interface Rooms {
  readonly fixture: NodeFixture;
  readonly rooms: MachineOrders;
  readonly provider: MemoryMachines;
}

async function openRooms(open?: OpenStore): Promise<Rooms> {
  const parts: { rooms?: MachineOrders; provider?: MemoryMachines } = {};
  const fixture = await nodeFixture(open, {
    machines: (db, clock) => {
      const provider = new MemoryMachines(() => clock.now());
      const options = { deadlineMs: 1_500_000, pollMs: 3000, insecure: true };
      const deps = { db, providers: [provider], sealer: memorySealer(), clock, publicUrl: "http://192.0.2.1", options };
      parts.provider = provider;
      parts.rooms = createMachineOrders(deps);
      return parts.rooms.orders;
    },
  });
  const { rooms, provider } = parts;
  if (rooms === undefined || provider === undefined) throw new Error("the fixture made no machines");
  return { fixture, rooms, provider };
}

/** Each machine enrols once, with the token in its own user data, as its installer would. */
async function enrolRunning({ enrollment, stores }: NodeFixture, provider: MemoryMachines): Promise<void> {
  for (const { request, machine } of provider.living) {
    const nodeId = request.label;
    if (machine.state !== "running" || (await stores.nodes.find(nodeId))?.enrolledAt !== null) continue;
    const bootstrapToken = /^flb_.*$/m.exec(request.userData)?.[0] ?? "";
    const call = {
      nodeId,
      bootstrapToken,
      request: new NodeKey().enrollRequest(nodeId, bootstrapToken),
      origin: ORIGIN,
    };
    // One that is being deleted is refused, as it should be.
    await enrollment.enroll(call).catch(() => undefined);
  }
}

function mortalProvider(provider: MemoryMachines, mortal: Mortal): MachineProvider {
  return {
    name: provider.name,
    needsToken: true,
    maxUserDataBytes: provider.maxUserDataBytes,
    checkToken: (token) => provider.checkToken(token),
    plans: (token) => provider.plans(token),
    create: mortal.wrap((token, request) => provider.create(token, request)),
    get: mortal.wrap((token, id) => provider.get(token, id)),
    delete: mortal.wrap((token, id) => provider.delete(token, id)),
    findByLabel: mortal.wrap((token, label) => provider.findByLabel(token, label)),
  };
}

function mortalNodes(nodes: NodeMachineService, mortal: Mortal): NodeMachineService {
  const hold: NodeMachineService["hold"] = async (nodeId, work) => mortal.wrap(() => nodes.hold(nodeId, work))();
  return Object.assign(Object.create(nodes) as NodeMachineService, {
    find: (id: string) => nodes.find(id),
    newToken: (id: string) => nodes.newToken(id),
    hold,
  });
}
