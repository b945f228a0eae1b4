import { healthSchema } from "@fairlead/protocol/engine-config";
import { keyOfSecret, secretKeySchema, secretNameSchema } from "@fairlead/protocol/secrets";
import {
  WORKLOAD_TYPE_ENGINE,
  type WorkloadSpec,
  type WorkloadType,
  workloadTypeSchema,
} from "@fairlead/protocol/workload";
import { z } from "zod";
import type { Container, Owner } from "./container-runtime.ts";

/** The labels by which a container tells whose it is and how to look after it, so that nothing else has to be remembered (dstack#4182). */
export const LABELS = {
  installation: "dev.fairlead.installation",
  node: "dev.fairlead.node",
  workload: "dev.fairlead.workload",
  /** Missing on containers of daemons that knew engines alone. */
  type: "dev.fairlead.type",
  spec: "dev.fairlead.spec",
  generation: "dev.fairlead.generation",
  /** How to probe it: a container of an older spec serves on while the spec itself is gone. */
  probe: "dev.fairlead.probe",
  /** The secrets that it takes as files, so that its folder can be filled without its spec. Missing: it has no folder. */
  secrets: "dev.fairlead.secrets",
  /** It finds a token of its own beside its secrets. Missing: it has none. */
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

/** `fairlead-<end of node id>-<workload>-<start of spec hash>`: the same spec on the same node has one name. */
export function containerName(nodeId: string, spec: Pick<WorkloadSpec, "name" | "specHash">): string {
  return `fairlead-${nodeId.slice(-8)}-${spec.name}-${spec.specHash.slice(0, 8)}`;
}

export function ownershipLabels(owner: Owner, spec: WorkloadSpec, generation: number): Record<string, string> {
  const { name: workloadName, port, health, models, versionPath, secrets = [] } = spec;
  // A plain name where the vault holds it by that name, as every daemon can read it.
  const files = secrets
    .filter(({ as }) => as === "file")
    .map((secret) => (keyOfSecret(secret) === secret.name ? secret.name : { name: secret.name, key: secret.key }));
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

export function isOwned(container: Pick<Container, "labels">, owner: Owner): boolean {
  const { labels } = container;
  return labels[LABELS.installation] === owner.installationId && labels[LABELS.node] === owner.nodeId;
}

export function workloadOf(container: Container): string {
  return container.labels[LABELS.workload] ?? "";
}

export function typeOf({ labels }: Pick<Container, "labels">): WorkloadType {
  const parsed = workloadTypeSchema.safeParse(labels[LABELS.type]);
  return parsed.success ? parsed.data : WORKLOAD_TYPE_ENGINE;
}

export function specHashOf(container: Container): string {
  return container.labels[LABELS.spec] ?? "";
}

export function generationOf(container: Container): number {
  return Number(container.labels[LABELS.generation] ?? 0) || 0;
}

/** Whether a container mounts a folder of files from this daemon. */
export function hasFolder(labels: Readonly<Record<string, string>>): boolean {
  return labels[LABELS.secrets] !== undefined;
}

/** A secret that a container takes as a file. */
export interface SecretFile {
  /** Of the file. */
  readonly name: string;
  /** What the vault holds it by. */
  readonly key: string;
}

const secretFileSchema = z.union([
  secretNameSchema.transform((name): SecretFile => ({ name, key: name })),
  z.object({ name: secretNameSchema, key: secretKeySchema }),
]);

/** None where the label is missing or was written by somebody else. */
export function secretFilesOf(labels: Readonly<Record<string, string>>): readonly SecretFile[] {
  try {
    const parsed = z.array(secretFileSchema).safeParse(JSON.parse(labels[LABELS.secrets] ?? "[]"));
    return parsed.success ? parsed.data : [];
  } catch {
    return [];
  }
}

/** Whether a container finds a token of its own in its folder. */
export function takesToken(labels: Readonly<Record<string, string>>): boolean {
  return labels[LABELS.token] !== undefined;
}

/** @returns null where the label is missing or of a form that this daemon does not know. */
export function probeSettingsOf(labels: Readonly<Record<string, string>>): ProbeSettings | null {
  try {
    const parsed = probeSettingsSchema.safeParse(JSON.parse(labels[LABELS.probe] ?? ""));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}
