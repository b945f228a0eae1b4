import { healthSchema } from "@fairlead/protocol/engine-config";
import { secretNameSchema } from "@fairlead/protocol/secrets";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import { z } from "zod";
import type { Container, Owner } from "./container-runtime.ts";

/** The labels by which a container tells whose it is and how to look after it, so that nothing else has to be remembered (dstack#4182). */
export const LABELS = {
  installation: "dev.fairlead.installation",
  node: "dev.fairlead.node",
  workload: "dev.fairlead.workload",
  spec: "dev.fairlead.spec",
  generation: "dev.fairlead.generation",
  /** How to probe it: a container of an older spec serves on while the spec itself is gone. */
  probe: "dev.fairlead.probe",
  /** Names of the secrets that it takes as files, so that its folder can be filled without its spec. Missing: it has no folder. */
  secrets: "dev.fairlead.secrets",
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
  const files = secrets.filter(({ as }) => as === "file").map(({ name }) => name);
  return {
    [LABELS.installation]: owner.installationId,
    [LABELS.node]: owner.nodeId,
    [LABELS.workload]: spec.workloadId,
    [LABELS.spec]: spec.specHash,
    [LABELS.generation]: String(generation),
    [LABELS.probe]: JSON.stringify({ workloadName, port, health, models, versionPath } satisfies ProbeSettings),
    [LABELS.secrets]: JSON.stringify(files),
  };
}

export function isOwned(container: Pick<Container, "labels">, owner: Owner): boolean {
  const { labels } = container;
  return labels[LABELS.installation] === owner.installationId && labels[LABELS.node] === owner.nodeId;
}

export function workloadOf(container: Container): string {
  return container.labels[LABELS.workload] ?? "";
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

/** Names of the secrets that a container takes as files; none where the label is missing or was written by somebody else. */
export function secretFilesOf(labels: Readonly<Record<string, string>>): readonly string[] {
  try {
    const parsed = z.array(secretNameSchema).safeParse(JSON.parse(labels[LABELS.secrets] ?? "[]"));
    return parsed.success ? parsed.data : [];
  } catch {
    return [];
  }
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
