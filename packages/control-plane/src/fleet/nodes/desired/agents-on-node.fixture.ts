import type { WorkloadReport, WorkloadSpec } from "@fairlead/protocol/workload";
import type { AgentsOnNode } from "./agents-on-node.ts";
import { withSpecHash } from "./spec-hash.ts";

/** Agents as tests place them. */
export class PlacedAgents implements AgentsOnNode {
  readonly #placed = new Map<string, readonly string[]>();
  readonly #connectors = new Map<string, readonly string[]>();

  place(nodeId: string, agentIds: readonly string[], connectors: readonly string[] = []): void {
    this.#placed.set(nodeId, agentIds);
    this.#connectors.set(nodeId, connectors);
  }

  async plannedOn(_transaction: unknown, nodeId: string): Promise<readonly WorkloadSpec[]> {
    return (this.#placed.get(nodeId) ?? []).map(agentSpec);
  }

  async connectorsOn(_transaction: unknown, nodeId: string): Promise<readonly string[]> {
    return this.#connectors.get(nodeId) ?? [];
  }
}

export function agentSpec(workloadId: string): WorkloadSpec {
  return withSpecHash({
    workloadId,
    workloadType: "WORKLOAD_TYPE_AGENT",
    name: workloadId.replace("_", "-"),
    image: "fairlead/demo-agent:1",
    command: [],
    args: [],
    env: {},
    port: 8080,
    health: {
      path: "/healthz",
      intervalSeconds: 5,
      timeoutSeconds: 3,
      startPeriodSeconds: 60,
      failureThreshold: 3,
      probe: "http",
    },
    volumes: [],
    resources: {},
    network: { internet: true },
    models: [],
    versionPath: null,
    update: "stop-first",
    workerToken: true,
  });
}

/** A report of an agent that runs. */
export function agentReport(
  workloadId: string,
  generation: number,
  changes: Partial<WorkloadReport> = {},
): WorkloadReport {
  return {
    workloadId,
    workloadType: "WORKLOAD_TYPE_AGENT",
    ready: true,
    state: "running",
    version: "",
    image: "fairlead/demo-agent:1",
    imageDigest: `sha256:${"1".repeat(64)}`,
    generation,
    models: [],
    startedAt: "2026-01-01T00:00:00.000Z",
    restartCount: 0,
    lastExit: null,
    message: "",
    ...changes,
  };
}
