import { NO_LIMITS } from "@fairlead/protocol/key-limits";
import type { KeyLimits } from "@fairlead/protocol/resources";
import type { KeyPrincipal, WorkerPrincipal } from "../ports/inference-caller.ts";

export function asKey(projectId: string, limits: Partial<KeyLimits> = {}): KeyPrincipal {
  return {
    kind: "key",
    keyId: "key_1",
    projectId: projectId as KeyPrincipal["projectId"],
    userId: "usr_1",
    limits: { ...NO_LIMITS, ...limits },
  };
}

/** An agent on a node, with a worker-plane token. */
export function asAgent(projectId: string, limits: Partial<KeyLimits> = {}): WorkerPrincipal {
  return {
    kind: "worker",
    agentId: "agt_1",
    nodeId: "nod_1",
    projectId: projectId as WorkerPrincipal["projectId"],
    limits: { ...NO_LIMITS, ...limits },
  };
}
