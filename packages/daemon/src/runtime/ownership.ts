import { healthSchema } from "@fairlead/protocol/engine-config";
import { keyOfSecret, secretKeySchema, secretNameSchema } from "@fairlead/protocol/secrets";
import { parseJson } from "@fairlead/protocol/values/parse-json";
import {
  WORKLOAD_TYPE_ENGINE,
  type WorkloadSpec,
  type WorkloadType,
  workloadTypeSchema,
} from "@fairlead/protocol/workload";
import { z } from "zod";
import type { Container, Owner } from "./container-runtime.ts";

/** Container labels that store the owner and everything needed to manage it (dstack#4182). */
export const LABELS = {
  installation: "dev.fairlead.installation",
  node: "dev.fairlead.node",
  workload: "dev.fairlead.workload",
  type: "dev.fairlead.type",
  spec: "dev.fairlead.spec",
  generation: "dev.fairlead.generation",
  /** Probe settings, needed while a container of an older spec still serves. */
  probe: "dev.fairlead.probe",
  /** Secrets mounted as files, to fill its folder without the spec. Missing: no folder. */
  secrets: "dev.fairlead.secrets",
  /** Set if the container gets a workload token. */
  token: "dev.fairlead.token",
} as const;

const probeSettingsSchema = z.object({
  workloadName: z.string(),
  port: z.number(),
  health: healthSchema.strip(),
  models: z.array(z.string()).nullable(),
  versionPath: z.string().nullable(),
});
export type ProbeSettings = z.infer<typeof probeSettingsSchema>;

/** `fairlead-<end of node id>-<workload>-<start of spec hash>`: unique per spec and node. */
export function containerName(nodeId: string, spec: Pick<WorkloadSpec, "name" | "specHash">): string {
  return `fairlead-${nodeId.slice(-8)}-${spec.name}-${spec.specHash.slice(0, 8)}`;
}

/** `fairlead-<end of node id>-<workload>`, with the suffix `-offline` for networks without internet, so that the two kinds never share a network. */
export function networkName(nodeId: string, spec: Pick<WorkloadSpec, "name" | "network">): string {
  return `fairlead-${nodeId.slice(-8)}-${spec.name}${spec.network.internet ? "" : "-offline"}`;
}

export function ownershipLabels(owner: Owner, spec: WorkloadSpec, generation: number): Record<string, string> {
  const { name: workloadName, port, health, models, versionPath, secrets = [] } = spec;
  const files = secrets
    .filter(({ as }) => as === "file")
    .map((secret): SecretFile => ({ name: secret.name, key: keyOfSecret(secret) }));
  return {
    [LABELS.installation]: owner.installationId,
    [LABELS.node]: owner.nodeId,
    [LABELS.workload]: spec.workloadId,
    [LABELS.type]: spec.workloadType,
    [LABELS.spec]: spec.specHash,
    [LABELS.generation]: String(generation),
    [LABELS.probe]: JSON.stringify({ workloadName, port, health, models, versionPath } satisfies ProbeSettings),
    [LABELS.secrets]: JSON.stringify(files),
    ...(spec.workerToken === true ? { [LABELS.token]: "file" } : {}),
  };
}

/** Docker filter for both owner labels. */
export function ownerFilter(owner: Owner): string[] {
  return [`${LABELS.installation}=${owner.installationId}`, `${LABELS.node}=${owner.nodeId}`];
}

export function isOwned(container: Pick<Container, "labels">, owner: Owner): boolean {
  const { labels } = container;
  return labels[LABELS.installation] === owner.installationId && labels[LABELS.node] === owner.nodeId;
}

export function containerWorkload(container: Container): string {
  return container.labels[LABELS.workload] ?? "";
}

/** Unknown types count as engines. */
export function workloadTypeOf({ labels }: Pick<Container, "labels">): WorkloadType {
  const parsed = workloadTypeSchema.safeParse(labels[LABELS.type]);
  return parsed.success ? parsed.data : WORKLOAD_TYPE_ENGINE;
}

export function specHashOf(container: Container): string {
  return container.labels[LABELS.spec] ?? "";
}

export function generationOf(container: Container): number {
  return Number(container.labels[LABELS.generation] ?? 0) || 0;
}

/** Whether the container mounts a secrets folder. */
export function hasFolder(labels: Readonly<Record<string, string>>): boolean {
  return labels[LABELS.secrets] !== undefined;
}

/** A secret mounted as a file: file name and vault key. */
const secretFileSchema = z.object({ name: secretNameSchema, key: secretKeySchema });
export type SecretFile = z.infer<typeof secretFileSchema>;

/** Empty if the label is missing or invalid. */
export function secretFilesOf(labels: Readonly<Record<string, string>>): readonly SecretFile[] {
  try {
    const parsed = z.array(secretFileSchema).safeParse(parseJson(labels[LABELS.secrets] ?? "[]"));
    return parsed.success ? parsed.data : [];
  } catch {
    return [];
  }
}

/** Whether the container gets a workload token. */
export function takesToken(labels: Readonly<Record<string, string>>): boolean {
  return labels[LABELS.token] !== undefined;
}

/** @returns null if the label is missing or invalid. */
export function probeSettingsOf(labels: Readonly<Record<string, string>>): ProbeSettings | null {
  try {
    const parsed = probeSettingsSchema.safeParse(parseJson(labels[LABELS.probe] ?? ""));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}
