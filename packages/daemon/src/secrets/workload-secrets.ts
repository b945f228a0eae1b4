import type { WorkloadSecret } from "@fairlead/protocol/secrets";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import type { Container, ContainerSecrets } from "../runtime/container-runtime.ts";

export interface MissingWorkloadSecret {
  readonly name: string;
  readonly as: WorkloadSecret["as"];
  /** For messages, such as `is not set`. */
  readonly why: string;
}

/** Secrets interface of the reconcile loop. Methods throw RuntimeError `rejected` if a secret is missing or cannot be written. */
export interface WorkloadSecrets {
  /** Missing secrets of the workload. */
  missing(spec: WorkloadSpec): readonly MissingWorkloadSecret[];
  /** Called before a container is created. @returns its secrets, or null. */
  prepare(name: string, spec: WorkloadSpec): Promise<ContainerSecrets | null>;
  /** Called before each start, because the folder is empty after a reboot. */
  place(container: Pick<Container, "id" | "name">): Promise<void>;
  /** Called after a container was removed. */
  discard(name: string): Promise<void>;
}

export function describeMissing(missing: readonly MissingWorkloadSecret[]): string {
  return `waiting for ${missing.map(({ name, why }) => `the secret ${name}, which ${why}`).join("; ")}`;
}
