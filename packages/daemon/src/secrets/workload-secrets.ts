import type { WorkloadSecret } from "@fairlead/protocol/secrets";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import type { Container, ContainerSecrets } from "../runtime/container-runtime.ts";

export interface MissingSecret {
  readonly name: string;
  readonly as: WorkloadSecret["as"];
  /** For people: `is not set`. */
  readonly why: string;
}

/** What the reconcile loop needs of secrets. Methods throw RuntimeError `rejected` where a secret is missing or cannot be placed. */
export interface WorkloadSecrets {
  /** What the workload waits for. */
  missing(spec: WorkloadSpec): readonly MissingSecret[];
  /** Before a container is made: what it gets beside its spec, or null for nothing. */
  prepare(name: string, spec: WorkloadSpec): Promise<ContainerSecrets | null>;
  /** Before a container starts, each time: after a reboot its folder is empty. */
  place(container: Pick<Container, "id" | "name">): Promise<void>;
  /** After a container is gone. */
  discard(name: string): Promise<void>;
}

export function describeMissing(missing: readonly MissingSecret[]): string {
  return `waits for ${missing.map(({ name, why }) => `the secret ${name}, which ${why}`).join("; ")}`;
}
