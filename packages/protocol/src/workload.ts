import { z } from "zod";
import { wantedDaemonSchema } from "./daemon-updates.ts";
import { healthSchema, resourcesSchema, volumeSchema } from "./engine-config.ts";
import { workloadSecretSchema } from "./secrets.ts";
import { anyText } from "./text.ts";

/** Desired and observed workloads: what the control plane asks of a node, and what the daemon says of it. */

export const WORKLOAD_TYPE_ENGINE = "WORKLOAD_TYPE_ENGINE";
export const WORKLOAD_TYPE_AGENT = "WORKLOAD_TYPE_AGENT";
export const workloadTypeSchema = z.enum([WORKLOAD_TYPE_ENGINE, WORKLOAD_TYPE_AGENT]);
export type WorkloadType = z.infer<typeof workloadTypeSchema>;

/** The name by which a container finds the machine that it runs on, where its spec names `localPorts`. */
export const LOCAL_HOST = "host.docker.internal";

/** One container that the daemon keeps running. Every choice is made already: nothing here is a default to fill in. */
export const workloadSpecSchema = z.object({
  workloadId: z.string(),
  workloadType: workloadTypeSchema,
  /** Unique on the node; part of the container's name. */
  name: z.string().regex(/^[a-z0-9-]{1,40}$/),
  image: z.string(),
  /** Replaces the image's entry point where it is not empty. */
  command: z.array(z.string()),
  args: z.array(z.string()),
  env: z.record(z.string(), z.string()),
  /** The container's port; published on a loopback port that the daemon picks. */
  port: z.number().int(),
  // People must not misspell these; an older daemon must not stumble over what a newer server adds.
  health: healthSchema.strip(),
  volumes: z.array(volumeSchema.strip()),
  resources: resourcesSchema.strip(),
  /** Left out where it needs none. */
  secrets: z.array(workloadSecretSchema).optional(),
  /** Whether it finds a token of its own, which the daemon asks for over the link and renews, as a file beside its secrets. */
  workerToken: z.boolean().optional(),
  /** Ports of the machine's loopback address that it reaches at `LOCAL_HOST`. */
  localPorts: z.array(z.number().int().min(1).max(65_535)).max(16).optional(),
  /** Model names, or null: ask the engine's `/v1/models`. */
  models: z.array(z.string()).nullable(),
  /** Where the engine tells its version, or null: the image's label or tag does. */
  versionPath: z.string().nullable(),
  update: z.enum(["start-first", "stop-first"]),
  /** How often somebody had it started anew; left out before the first time. */
  restarts: z.number().int().min(1).optional(),
  /** SHA-256 over the rest (of `secrets`, over what a running container cannot take up), made by the control plane, so that a newer daemon does not see a change where none is. */
  specHash: z.string(),
});
export type WorkloadSpec = z.infer<typeof workloadSpecSchema>;

export const desiredStateSchema = z.object({
  /** Names the store that wrote it. A restored backup gets a new one, and daemons follow it. */
  epoch: z.string(),
  /** Grows with every change inside one epoch. */
  generation: z.number().int().min(0),
  installationId: z.string(),
  nodeId: z.string(),
  projectId: z.string(),
  workloads: z.array(workloadSpecSchema),
  /** The version that the daemon itself is to become; left out where it is to stay. What cannot be read must not keep workloads from running. */
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

export const lastExitSchema = z.object({ code: z.number().int(), reason: anyText(), at: anyText() });
export type LastExit = z.infer<typeof lastExitSchema>;

export const workloadReportSchema = z
  .object({
    workloadId: anyText(),
    workloadType: workloadTypeSchema,
    ready: z.boolean(),
    state: workloadStateSchema,
    version: anyText(),
    image: anyText(),
    /** `sha256:…`: the registry's digest, else the id of an image that was never in a registry. "" while unknown. */
    imageDigest: anyText(),
    generation: z.number().int().min(0),
    models: z.array(anyText()),
    startedAt: anyText().nullable(),
    restartCount: z.number().int().min(0),
    lastExit: lastExitSchema.nullable(),
    message: anyText(),
    /** Percent of an image that is being pulled. Left out where none is, and by daemons that do not tell. */
    progress: z.number().int().min(0).max(100).nullable().optional(),
  })
  .meta({ id: "WorkloadReport" });
export type WorkloadReport = z.infer<typeof workloadReportSchema>;

/** `POST /v1/nodes/{id}/ready`. A newer daemon may send more fields; they are ignored. */
export const readyRequestSchema = z.object({
  id: z.string(),
  workloadReports: z.array(workloadReportSchema).max(256),
  operatingSystem: anyText().max(256),
  workerImageDigest: anyText().max(256),
});
export type ReadyRequest = z.infer<typeof readyRequestSchema>;
