import type { WorkloadSpec } from "@fairlead/protocol/workload";
import type { Container, ContainerSecrets } from "../runtime/container-runtime.ts";
import type { MissingWorkloadSecret, WorkloadSecrets } from "../secrets/workload-secrets.ts";

/** Secrets without folders; tests define which ones are missing. */
export class MemorySecrets implements WorkloadSecrets {
  /** Names of missing secrets. */
  readonly lacking = new Set<string>();
  /** All calls with an effect, in order. */
  readonly calls: string[] = [];

  missing({ secrets = [] }: WorkloadSpec): readonly MissingWorkloadSecret[] {
    return secrets
      .filter(({ name }) => this.lacking.has(name))
      .map(({ name, as }) => ({ name, as, why: "is not set" }));
  }

  async prepare(name: string, { secrets = [] }: WorkloadSpec): Promise<ContainerSecrets | null> {
    this.calls.push(`prepare ${name}`);
    return secrets.length === 0 ? null : { folder: `/memory/${name}`, env: {} };
  }

  async place({ name }: Pick<Container, "name">): Promise<void> {
    this.calls.push(`place ${name}`);
  }

  async discard(name: string): Promise<void> {
    this.calls.push(`discard ${name}`);
  }
}
