import type { Node, NodeEvent, NodeWorkload } from "@fairlead/protocol/resources";
import { EXAMPLE_NODE } from "@fairlead/protocol/testing/example-node";

/** A node in a response of the platform host. */

export const ENGINE: NodeWorkload = {
  name: "engine",
  workloadType: "WORKLOAD_TYPE_ENGINE",
  state: "running",
  ready: true,
  version: "1.0",
  image: "engine:1",
  imageDigest: `sha256:${"a".repeat(64)}`,
  generation: 1,
  desiredImage: "engine:1",
  desiredGeneration: 1,
  upToDate: true,
  models: ["tiny"],
  startedAt: "2030-01-01T00:00:01.000Z",
  restartCount: 0,
  lastExit: null,
  message: "",
  progress: null,
};

/** Workload of an agent that is starting. */
export const AGENT_WORKLOAD: NodeWorkload = {
  ...ENGINE,
  name: "agent-1",
  workloadType: "WORKLOAD_TYPE_AGENT",
  state: "pulling",
  ready: false,
  version: "",
  image: "",
  imageDigest: "",
  generation: null,
  desiredImage: "bot:1",
  upToDate: false,
  models: [],
  startedAt: null,
  progress: 10,
};

export const NODE: Node = {
  ...EXAMPLE_NODE,
  id: "nod_1",
  userId: "usr_1",
  projectId: "prj_1",
  status: "active",
  statusMessage: "all workloads are ready",
  statusSince: "2030-01-01T00:00:02.000Z",
  name: "Attic",
  identifier: "attic",
  planId: "byo",
  publicIp: "",
  directSecrets: false,
  connectors: [],
  engineConfig: { image: "engine:1", env: { A: "1", B: "2" } },
  createdAt: "2030-01-01T00:00:00.000Z",
  operatingSystem: "Debian 12",
  daemonVersion: "1.2.3",
  desiredDaemonVersion: null,
  daemonUpdate: null,
  lastSeenAt: "2030-01-01T00:00:03.000Z",
  conditions: [],
  workloads: [ENGINE],
};

export function nodeEvent(event: Pick<NodeEvent, "id" | "kind" | "message"> & Partial<NodeEvent>): NodeEvent {
  return { at: "2030-01-01T00:00:00.000Z", status: null, ...event };
}
