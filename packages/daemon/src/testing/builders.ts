import {
  type DesiredState,
  WORKLOAD_TYPE_AGENT,
  WORKLOAD_TYPE_ENGINE,
  type WorkloadSpec,
} from "@fairlead/protocol/workload";

export const OWNER = { installationId: "ins_test", nodeId: "nod_01test0000000000000000abcd" } as const;

export function aSpec(overrides: Partial<WorkloadSpec> = {}): WorkloadSpec {
  return {
    workloadId: "wkl_engine",
    workloadType: WORKLOAD_TYPE_ENGINE,
    name: "engine",
    image: "example/engine:1",
    command: [],
    args: [],
    env: {},
    port: 8080,
    health: {
      path: "/health",
      intervalSeconds: 5,
      timeoutSeconds: 2,
      startPeriodSeconds: 60,
      failureThreshold: 3,
      probe: "http",
    },
    volumes: [],
    resources: {},
    network: { internet: true },
    models: null,
    versionPath: null,
    update: "stop-first",
    specHash: "a".repeat(64),
    ...overrides,
  };
}

/** Uses an image that no engine has, so that only this workload fails. */
export function anAgent(overrides: Partial<WorkloadSpec> = {}): WorkloadSpec {
  const { workloadId = "agt_one" } = overrides;
  return aSpec({
    workloadId,
    workloadType: WORKLOAD_TYPE_AGENT,
    name: workloadId.replace("agt_", "agent-"),
    image: "example/agent:1",
    models: [],
    workerToken: true,
    specHash: "c".repeat(64),
    ...overrides,
  });
}

export function aDesiredState(overrides: Partial<DesiredState> = {}): DesiredState {
  return { epoch: "epo_1", generation: 1, ...OWNER, projectId: "prj_test", workloads: [aSpec()], ...overrides };
}
