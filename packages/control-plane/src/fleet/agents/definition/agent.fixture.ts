import { DomainError } from "@fairlead/protocol/errors";
import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import type { WorkloadReport } from "@fairlead/protocol/workload";
import type { Kysely } from "kysely";
import { pino } from "pino";
import { memorySealer } from "../../../access/auth/sealing/memory-sealer.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import { type OpenStore, openMemoryStore } from "../../../testing.fixture.ts";
import { agentReport } from "../../nodes/desired/agents-on-node.fixture.ts";
import { INSTALLATION, type NodeFixture, nodeFixture, OWNER, PROJECT } from "../../nodes/node.fixture.ts";
import { EventRooms } from "../../nodes/records/event-rooms.ts";
import { SecretService } from "../../secrets/secret-service.ts";
import { type AgentServices, createAgentServices } from "../agent-room.ts";
import type { CreateAgent } from "../agent-service.ts";
import { AgentAccessLookup } from "../life/agent-access.ts";
import { AgentPlanner } from "../life/agent-planner.ts";
import { type AgentChange, AgentChangeFeed } from "../records/agent-change-feed.ts";
import { AgentHistory } from "../records/agent-history.ts";
import { type AgentStores, agentStores } from "../records/agent-stores.ts";
import type { AgentRecord } from "./agent.ts";
import { ConnectorCatalogue } from "./connectors.ts";

/** The agents' services on those of nodes, with daemons that say what a test lets them say. */

export interface AgentFixture extends AgentServices {
  readonly nodes: NodeFixture;
  readonly stores: AgentStores;
  readonly standings: AgentAccessLookup;
  /** What was told of agents, in its order. */
  readonly told: readonly AgentChange[];
  /** A node whose daemon has enrolled and reported that nothing runs. */
  node(name: string): Promise<string>;
  create(nodeId: string, input?: Partial<CreateAgent>): Promise<AgentRecord>;
  /** One that runs on the node, with all secrets that it needs. */
  running(nodeId: string, input?: Partial<CreateAgent>): Promise<AgentRecord>;
  /** The daemon says how the agents are that it runs, of the desired state that it has now; and agents follow. */
  report(nodeId: string, agents: Readonly<Record<string, Partial<WorkloadReport>>>): Promise<void>;
  /** All that it shall run is ready, or gone. */
  obey(nodeId: string): Promise<void>;
  /** Ids of the agents that it shall run. */
  desired(nodeId: string): Promise<string[]>;
  /** All agents around the node follow what is known of it. */
  follow(nodeId: string): Promise<void>;
  find(id: string): Promise<AgentRecord | null>;
  kinds(id: string): Promise<string[]>;
  /** Events that nodes caused and that did not fit. */
  dropped(): number;
  close(): Promise<void>;
}

export async function agentFixture(
  open: OpenStore = openMemoryStore,
  { maxEventRows = 10_000 }: { readonly maxEventRows?: number } = {},
): Promise<AgentFixture> {
  const connectors = new ConnectorCatalogue([]);
  const sealer = memorySealer();
  const clock = new TestClock();
  const secretsOn = (db: Kysely<Database>): SecretService => new SecretService({ kind: "agent", db, sealer, clock });
  const held: SecretService["held"] = (transaction, agentId) => secretsOn(transaction).held(transaction, agentId);
  let dropped = 0;
  let rooms: EventRooms | null = null;
  const roomsOf = (of: AgentStores): EventRooms =>
    (rooms ??= new EventRooms({
      count: (nodeId, limit) => of.events.countOn(nodeId, limit),
      maxRows: maxEventRows,
      clock,
      onDropped: (_nodeId, rows) => {
        dropped += rows;
      },
    }));
  const nodes = await nodeFixture(open, {
    agents: new AgentPlanner({ connectors, secrets: { held }, modelsUrl: "http://models.example.org" }),
    histories: (store, clock) => {
      const stores = agentStores(store);
      return new AgentHistory({ clock, ids: countingIds(2), stores, rooms: roomsOf(stores) });
    },
  });
  const { db } = nodes.store;
  const changes = new AgentChangeFeed();
  const told: AgentChange[] = [];
  changes.listen((change) => void told.push(change));
  const services = createAgentServices({
    db,
    hosts: nodes.agentHosts,
    rooms: roomsOf(agentStores(db)),
    connectors,
    secrets: secretsOn(db),
    changes,
    bounds: nodes.bounds,
    access: nodes.access,
    audit: nodes.audit,
    people: { get: async (userId) => ({ email: `${userId}@example.org` }) },
    clock: nodes.clock,
    ids: countingIds(1),
    log: pino({ level: "silent" }),
  });
  const stores = agentStores(db);
  const world = driven({ nodes, services, stores });
  return {
    ...services,
    ...world,
    nodes,
    stores,
    standings: new AgentAccessLookup(stores.agents),
    told,
    dropped: () => dropped,
    close: () => nodes.close(),
  };
}

interface Driven {
  readonly nodes: NodeFixture;
  readonly services: AgentServices;
  readonly stores: AgentStores;
}

type Drive = Pick<
  AgentFixture,
  "node" | "create" | "running" | "report" | "obey" | "desired" | "follow" | "find" | "kinds"
>;

function driven({ nodes, services, stores }: Driven): Drive {
  const follow: Drive["follow"] = async (nodeId) => {
    for (const { id } of await stores.agents.around(nodeId)) await services.agentTransitions.look(id);
  };
  const desired: Drive["desired"] = async (nodeId) => {
    const { workloads } = await nodes.reports.desiredState(nodeId);
    return workloads.map(({ workloadId }) => workloadId).filter((id) => id.startsWith("agt_"));
  };
  const report: Drive["report"] = async (nodeId, agents) => {
    const { generation } = await nodes.reports.desiredState(nodeId);
    const workloadReports = Object.entries(agents).map(([id, changes]) => agentReport(id, generation, changes));
    await nodes.reports.observe(nodeId, { epoch: INSTALLATION.epoch, generation, workloadReports });
    await follow(nodeId);
  };
  const obey: Drive["obey"] = async (nodeId) => {
    await report(nodeId, Object.fromEntries((await desired(nodeId)).map((id) => [id, {}])));
  };
  const create: Drive["create"] = (nodeId, input = {}) =>
    services.agents.create(OWNER, {
      projectId: PROJECT,
      name: "Night shift",
      guest: "fairlead-demo-agent",
      runtimeProvider: `node:${nodeId}`,
      connectorSlugs: [],
      config: {},
      limits: {},
      ...input,
    });
  return {
    follow,
    desired,
    report,
    obey,
    create,
    node: async (name) => {
      const { node } = await nodes.createEnrolled(name, null);
      const { generation } = await nodes.reports.desiredState(node.id);
      await nodes.reports.observe(node.id, { epoch: INSTALLATION.epoch, generation, workloadReports: [] });
      await nodes.status.apply(node.id, "reported_ready", "All workloads are ready.");
      return node.id;
    },
    running: async (nodeId, input) => {
      const { id } = await create(nodeId, input);
      for (const name of missingOf(await services.agentLife.start(OWNER, id).catch((error: unknown) => error)))
        await services.agentSecrets.put(OWNER, id, { name, value: `${name} of it` });
      await services.agentLife.start(OWNER, id);
      await obey(nodeId);
      return (await stores.agents.find(id)) as AgentRecord;
    },
    find: (id) => stores.agents.find(id),
    kinds: async (id) =>
      (await stores.events.list(id, { limit: 50, after: null })).map(({ kind }) => kind).toReversed(),
  };
}

function missingOf(started: unknown): string[] {
  const isRefusal = started instanceof DomainError && started.code === "missing_secrets";
  return isRefusal ? (started.missingSecrets ?? []).map(({ name }) => name) : [];
}
