import { z } from "zod";
import { conditionSchema } from "./conditions.ts";
import { daemonUpdateSchema } from "./daemon-updates.ts";
import { anyText } from "./text.ts";
import { workloadReportSchema } from "./workload.ts";

/** Messages of the daemon link (tRPC over one outbound WebSocket) and names of the tunnel. All are small. */

/** What this release speaks: its own version and the one before, so that either side may be updated first. */
export const PROTOCOL_VERSIONS: readonly number[] = [1, 2];

/** The first version that knows workloads of agents and their tokens. */
export const AGENTS_PROTOCOL_VERSION = 2;

/** @returns the highest version that both sides speak, or null where there is none. */
export function agreedVersion(ours: readonly number[], theirs: readonly number[]): number | null {
  const common = ours.filter((version) => theirs.includes(version));
  return common.length === 0 ? null : Math.max(...common);
}

/** Close code of a link whose place another link of the same node has taken: at most one daemon speaks for a node. */
export const LINK_TAKEN_OVER = 4001;

export const LINK_PATH = (nodeId: string): string => `/v1/nodes/${nodeId}/link`;
export const TUNNEL_PATH = (nodeId: string): string => `/v1/nodes/${nodeId}/tunnel`;

/** The value of `Upgrade` that turns a request on the platform host into the tunnel's raw socket. */
export const TUNNEL_UPGRADE = "fairlead-tunnel";

/**
 * What is spoken on that socket. A daemon lists what it knows with its request, the best first, and the platform host names its choice
 * in the answer; daemons and servers of former releases say nothing here, and speak `h2`.
 */
export const TUNNEL_PROTOCOL_HEADER = "fairlead-tunnel-protocol";
export const TUNNEL_PROTOCOLS = ["yamux", "h2"] as const;
export type TunnelProtocol = (typeof TUNNEL_PROTOCOLS)[number];

/** Names the workload that a request inside the tunnel is for, by its `name`. */
export const TUNNEL_WORKLOAD_HEADER = "fairlead-workload";

/** In place of a workload's name: the daemon's own service that tells what a workload printed. No workload can be named so. */
export const LOGS_WORKLOAD = ":logs";

/** The workload-connect token of a relayed request. The gateway checks it again; the inference host's own requests carry none. */
export const TUNNEL_TOKEN_HEADER = "fairlead-token";

/** Set by the daemon's gateway on answers of its own, so that they are never taken for the engine's. Value: an error code. */
export const TUNNEL_FAULT_HEADER = "fairlead-fault";

export const gpuSchema = z.object({ id: anyText(), name: anyText(), memoryMb: z.number().int() });
export type Gpu = z.infer<typeof gpuSchema>;

export const hostFactsSchema = z.object({
  operatingSystem: anyText(),
  kernel: anyText(),
  architecture: anyText(),
  hostName: anyText(),
  cpus: z.number().int(),
  memoryMb: z.number().int(),
  diskFreeMb: z.number().int(),
  dockerVersion: anyText(),
  /** Left out by daemons that do not look for any. */
  gpus: z.array(gpuSchema).max(64).optional(),
});
export type HostFacts = z.infer<typeof hostFactsSchema>;

export const helloSchema = z.object({
  protocolVersions: z.array(z.number().int()).min(1),
  daemonVersion: anyText(),
  /** Random, new at every start of the daemon: tells a restart from a copied state folder. */
  bootId: anyText(),
  host: hostFactsSchema,
});
export type Hello = z.infer<typeof helloSchema>;

export const helloAnswerSchema = z.object({
  protocolVersion: z.number().int(),
  /** How often to send a heartbeat; set by the server so that the whole fleet stays under a stated rate. */
  heartbeatSeconds: z.number().int(),
  /** Unix milliseconds at the server, so that the node can measure its skew. */
  serverTime: z.number(),
});
export type HelloAnswer = z.infer<typeof helloAnswerSchema>;

/** The daemon asks for a token of one of its node's workloads; the node comes from the credential. */
export const workerTokenRequestSchema = z.object({ workloadId: z.string() });
export type WorkerTokenRequest = z.infer<typeof workerTokenRequestSchema>;

export const workerTokenAnswerSchema = z.discriminatedUnion("state", [
  z.object({ state: z.literal("issued"), token: z.string(), expiresIn: z.number().describe("Seconds.") }),
  /** It may have none now: it is not wanted, or not on this node. */
  z.object({ state: z.literal("none") }),
]);
export type WorkerTokenAnswer = z.infer<typeof workerTokenAnswerSchema>;

export const heartbeatSchema = z.object({ epoch: z.string(), generation: z.number().int() });
export type Heartbeat = z.infer<typeof heartbeatSchema>;

export const heartbeatAnswerSchema = z.object({
  heartbeatSeconds: z.number().int(),
  serverTime: z.number(),
  /** The server took the node for lost: the daemon says everything anew. Daemons that do not know it do so by themselves in a while. */
  report: z.boolean().optional(),
});
export type HeartbeatAnswer = z.infer<typeof heartbeatAnswerSchema>;

/** What is, sent on change. */
export const observationSchema = z.object({
  epoch: z.string(),
  generation: z.number().int(),
  workloadReports: z.array(workloadReportSchema).max(256),
  /** The machine's own state. Left out by daemons that do not tell. */
  conditions: z.array(conditionSchema).max(32).optional(),
  /** How the daemon's own update stands; null before the first. Left out by daemons that cannot update themselves. */
  daemonUpdate: daemonUpdateSchema.nullable().optional(),
});
export type Observation = z.infer<typeof observationSchema>;

/** Something that happened on the node; `id` makes a repeat harmless. */
export const nodeEventSchema = z.object({
  id: anyText(),
  at: z.string(),
  kind: anyText().max(64),
  workloadId: z.string().nullable(),
  message: anyText().max(2048),
});
export type NodeEvent = z.infer<typeof nodeEventSchema>;
export const nodeEventsSchema = z.array(nodeEventSchema).max(100);
