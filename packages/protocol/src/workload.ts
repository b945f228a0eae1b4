import { z } from "zod";
import { wantedDaemonSchema } from "./daemon-updates.ts";
import { healthSchema, networkSchema, resourcesSchema, volumeSchema } from "./engine-config.ts";
import { workloadSecretSchema } from "./secrets.ts";
import { anyText, boundedArray } from "./values/text.ts";

/** Desired workloads, sent by the control plane, and observed workloads, reported by the daemon. */

export const WORKLOAD_TYPE_ENGINE = "WORKLOAD_TYPE_ENGINE";
export const WORKLOAD_TYPE_AGENT = "WORKLOAD_TYPE_AGENT";
export const workloadTypeSchema = z.enum([WORKLOAD_TYPE_ENGINE, WORKLOAD_TYPE_AGENT]);
export type WorkloadType = z.infer<typeof workloadTypeSchema>;

/** Name of the platform inside a container if it has no other, for example at a loopback address of the machine. */
export const LOCAL_HOST = "host.docker.internal";

/** How a workload reaches the platform, whatever its network allows otherwise. */
export const platformAddressSchema = z.object({
  /** Hostname inside the container. */
  name: z.string().max(253),
  /** Hostname on the machine. */
  host: z.string().max(253),
  port: z.number().int().min(1).max(65_535),
  /** Whether the daemon forwards connections; otherwise the container connects directly. */
  forwarded: z.boolean(),
});
export type PlatformAddress = z.infer<typeof platformAddressSchema>;

/** Every workload has a separate network, on which the daemon is its only peer. */
export const workloadNetworkSchema = networkSchema.required().extend({ platform: platformAddressSchema.optional() });
export type WorkloadNetwork = z.infer<typeof workloadNetworkSchema>;

/** One container that the daemon keeps running. All defaults are already applied. */
export const workloadSpecSchema = z.object({
  workloadId: z.string(),
  workloadType: workloadTypeSchema,
  /** Unique on the node; part of the container's name. */
  name: z.string().regex(/^[a-z0-9-]{1,40}$/),
  image: z.string(),
  /** Replaces the image's entry point unless empty. */
  command: z.array(z.string()),
  args: z.array(z.string()),
  env: z.record(z.string(), z.string()),
  /** The container's port, published on a loopback port chosen by the daemon. */
  port: z.number().int(),
  // Strict for user input, but an older daemon must accept fields of a newer server.
  health: healthSchema.strip(),
  volumes: z.array(volumeSchema.strip()),
  resources: resourcesSchema.strip(),
  /** Omitted if it needs none. */
  secrets: z.array(workloadSecretSchema).optional(),
  /** Whether the workload gets a token, which the daemon requests over the link and renews, as a file next to its secrets. */
  workerToken: z.boolean().optional(),
  network: workloadNetworkSchema.strip(),
  /** Whether Docker's init process starts the program. Omitted: yes, unless the image starts an init process itself. */
  init: z.boolean().optional(),
  /** Model names, or null to query the engine's `/v1/models`. */
  models: z.array(z.string()).nullable(),
  /** Path that returns the engine's version, or null to use the image's label or tag. */
  versionPath: z.string().nullable(),
  update: z.enum(["start-first", "stop-first"]),
  /** Number of requested restarts; omitted before the first. */
  restarts: z.number().int().min(1).optional(),
  /**
   * SHA-256 over the rest (of `secrets`, only what a running container cannot reload), computed by the control plane so that a
   * newer daemon does not detect false changes.
   */
  specHash: z.string(),
});
export type WorkloadSpec = z.infer<typeof workloadSpecSchema>;

export const desiredStateSchema = z.object({
  /** Identifies the store that wrote it. A restored backup gets a new one, and daemons follow it. */
  epoch: z.string(),
  /** Increases with every change within an epoch. */
  generation: z.number().int().min(0),
  installationId: z.string(),
  nodeId: z.string(),
  projectId: z.string(),
  workloads: z.array(workloadSpecSchema),
  /** The daemon's target version; omitted to keep the current one. Unreadable values must not keep workloads from running. */
  daemon: wantedDaemonSchema.optional().catch(undefined),
});
export type DesiredState = z.infer<typeof desiredStateSchema>;

export const workloadStateSchema = z.enum([
  "pending",
  "pulling",
  "starting",
  "running",
  "backing-off",
  "stopping",
  "failed",
  "unknown",
]);
export type WorkloadState = z.infer<typeof workloadStateSchema>;

/** An ID as sent by a daemon: any kind, so that older servers accept newer kinds. */
export const idTextSchema = anyText(64);
export const generationSchema = z.number().int().min(0);

/** Limits of a report, in characters and items. The daemon truncates what is longer. */
export const REPORT_LIMITS = {
  reports: 256,
  version: 128,
  image: 512,
  digest: 256,
  models: 256,
  model: 256,
  time: 64,
  message: 1024,
} as const;

const int32 = z
  .number()
  .int()
  .min(-(2 ** 31))
  .max(2 ** 31 - 1);

export const lastExitSchema = z.object({
  code: int32,
  reason: anyText(REPORT_LIMITS.message),
  at: anyText(REPORT_LIMITS.time),
});
export type LastExit = z.infer<typeof lastExitSchema>;

export const workloadReportSchema = z
  .object({
    workloadId: idTextSchema,
    workloadType: workloadTypeSchema,
    ready: z.boolean(),
    state: workloadStateSchema,
    version: anyText(REPORT_LIMITS.version),
    image: anyText(REPORT_LIMITS.image),
    /** `sha256:…`: the registry's digest, or the image ID if it was never in a registry. "" while unknown. */
    imageDigest: anyText(REPORT_LIMITS.digest),
    generation: generationSchema,
    models: boundedArray(anyText(REPORT_LIMITS.model), REPORT_LIMITS.models),
    startedAt: anyText(REPORT_LIMITS.time).nullable(),
    restartCount: int32.min(0),
    lastExit: lastExitSchema.nullable(),
    message: anyText(REPORT_LIMITS.message),
    /** Percentage of the image pull in progress; null or omitted otherwise. */
    progress: z.number().int().min(0).max(100).nullable().optional(),
  })
  .meta({ id: "WorkloadReport" });
export type WorkloadReport = z.infer<typeof workloadReportSchema>;
export const workloadReportsSchema = boundedArray(workloadReportSchema, REPORT_LIMITS.reports);

/** `POST /v1/nodes/{id}/ready`. Unknown fields from newer daemons are ignored. */
export const readyRequestSchema = z.object({
  id: idTextSchema,
  workloadReports: workloadReportsSchema,
  operatingSystem: anyText(256),
  workerImageDigest: anyText(REPORT_LIMITS.digest),
});
export type ReadyRequest = z.infer<typeof readyRequestSchema>;
