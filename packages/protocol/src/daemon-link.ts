import { z } from "zod";
import { conditionSchema } from "./conditions.ts";
import { daemonUpdateSchema } from "./daemon-updates.ts";
import { anyText, boundedArray, protocolVersionsSchema } from "./values/text.ts";
import { generationSchema, idTextSchema, workloadReportsSchema } from "./workload.ts";

/** Messages of the daemon link (tRPC over one outbound WebSocket) and names of the tunnel. All messages are small. */

/** Supported versions. A release that changes the link also supports the previous version, so that either side can be updated first. */
export const PROTOCOL_VERSIONS: readonly number[] = [1];

/** @returns the highest version that both sides support, or null if there is none. */
export function agreedVersion(ours: readonly number[], theirs: readonly number[]): number | null {
  const common = ours.filter((version) => theirs.includes(version));
  return common.length === 0 ? null : Math.max(...common);
}

/** Maximum bytes of one message from the daemon. */
export const MAX_LINK_MESSAGE_BYTES = 1024 * 1024;
/** Maximum concurrent calls on a daemon's link, not counting the subscription. */
export const MAX_LINK_CALLS = 16;
export const MAX_EVENTS_PER_CALL = 100;
export const MAX_EVENT_MESSAGE = 2048;
export const MAX_CONDITIONS = 32;
export const MAX_GPUS = 64;

/** Close code of a link that exceeded the rate of any real daemon. */
export const LINK_FLOODED = 4029;

/** Close code of a link that was replaced by another link of the same node: a node has at most one. */
export const LINK_TAKEN_OVER = 4001;

export const LINK_PATH = (nodeId: string): string => `/v1/nodes/${nodeId}/link`;
export const TUNNEL_PATH = (nodeId: string): string => `/v1/nodes/${nodeId}/tunnel`;

/** Value of `Upgrade` that turns a request to the platform host into the tunnel's raw socket. */
export const TUNNEL_UPGRADE = "fairlead-tunnel";

/** In place of a workload name: the daemon's service for workload logs. No workload can have this name. */
export const LOGS_WORKLOAD = ":logs";

/** The workload-connect token of a relayed request, verified again by the gateway. The inference host's own requests carry none. */
export const TUNNEL_TOKEN_HEADER = "fairlead-token";

/** Set by the daemon's gateway on its own error responses, to distinguish them from the engine's. Value: an error code. */
export const TUNNEL_FAULT_HEADER = "fairlead-fault";

const megabytes = z
  .number()
  .int()
  .min(0)
  .max(2 ** 40);

export const gpuSchema = z.object({ id: anyText(128), name: anyText(128), memoryMb: megabytes });
export type Gpu = z.infer<typeof gpuSchema>;

export const hostFactsSchema = z.object({
  operatingSystem: anyText(256),
  kernel: anyText(256),
  architecture: anyText(64),
  hostName: anyText(256),
  cpus: z.number().int().min(0).max(1_000_000),
  memoryMb: megabytes,
  diskFreeMb: megabytes,
  dockerVersion: anyText(64),
  /** Omitted if GPUs were not probed. */
  gpus: boundedArray(gpuSchema, MAX_GPUS).optional(),
});
export type HostFacts = z.infer<typeof hostFactsSchema>;

export const helloSchema = z.object({
  protocolVersions: protocolVersionsSchema,
  daemonVersion: anyText(64),
  /** Random, new at every start of the daemon: distinguishes a restart from a copied state folder. */
  bootId: anyText(64),
  host: hostFactsSchema,
});
export type Hello = z.infer<typeof helloSchema>;

export const helloAnswerSchema = z.object({
  protocolVersion: z.number().int(),
  /** Heartbeat interval, set by the server to limit the rate of the whole fleet. */
  heartbeatSeconds: z.number().int(),
  /** Unix milliseconds on the server, from which the node measures its clock skew. */
  serverTime: z.number(),
});
export type HelloAnswer = z.infer<typeof helloAnswerSchema>;

/** The daemon requests a token for a workload of its node; the node is taken from the credential. */
export const workerTokenRequestSchema = z.object({ workloadId: idTextSchema });
export type WorkerTokenRequest = z.infer<typeof workerTokenRequestSchema>;

export const workerTokenAnswerSchema = z.discriminatedUnion("state", [
  z.object({ state: z.literal("issued"), token: z.string(), expiresIn: z.number().describe("Seconds.") }),
  /** Not wanted at the moment, or not on this node. */
  z.object({ state: z.literal("none") }),
]);
export type WorkerTokenAnswer = z.infer<typeof workerTokenAnswerSchema>;

export const heartbeatSchema = z.object({ epoch: idTextSchema, generation: generationSchema });
export type Heartbeat = z.infer<typeof heartbeatSchema>;

export const heartbeatAnswerSchema = z.object({
  heartbeatSeconds: z.number().int(),
  serverTime: z.number(),
  /** The server considered the node lost: the daemon reports everything again. */
  report: z.boolean().optional(),
});
export type HeartbeatAnswer = z.infer<typeof heartbeatAnswerSchema>;

/** Current state, sent on change. */
export const observationSchema = z.object({
  epoch: idTextSchema,
  generation: generationSchema,
  workloadReports: workloadReportsSchema,
  /** State of the machine itself. Omitted: unchanged. */
  conditions: boundedArray(conditionSchema, MAX_CONDITIONS).optional(),
  /** State of the daemon's own update; null before the first. Omitted: unchanged. */
  daemonUpdate: daemonUpdateSchema.nullable().optional(),
});
export type Observation = z.infer<typeof observationSchema>;

/** An event on the node; `id` makes retries idempotent. */
export const reportedNodeEventSchema = z.object({
  id: anyText(64),
  at: anyText(64),
  kind: anyText(64),
  workloadId: idTextSchema.nullable(),
  message: anyText(MAX_EVENT_MESSAGE),
});
export type ReportedNodeEvent = z.infer<typeof reportedNodeEventSchema>;
export const nodeEventsSchema = boundedArray(reportedNodeEventSchema, MAX_EVENTS_PER_CALL);

/** There is nothing to resume: the full state is sent. */
export const desiredStateRequestSchema = z.object({ lastEventId: z.string().max(128).nullish() });
