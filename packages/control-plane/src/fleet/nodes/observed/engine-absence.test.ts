import type { NodeStatus } from "@fairlead/protocol/resources";
import { NODE_STATUSES } from "@fairlead/protocol/resources";
import { WORKLOAD_TYPE_ENGINE, type WorkloadReport, type WorkloadState } from "@fairlead/protocol/workload";
import { describe, expect, test } from "vitest";
import { engineAbsence } from "./engine-absence.ts";

const node = (status: NodeStatus, statusMessage = "Said so.") => ({
  identifier: "box",
  status,
  statusMessage,
  statusSince: Date.UTC(2026, 0, 2, 3, 4, 5),
});

function report(state: WorkloadState, changes: Partial<WorkloadReport> = {}): WorkloadReport {
  return {
    workloadId: "nod_1-engine",
    workloadType: WORKLOAD_TYPE_ENGINE,
    ready: false,
    state,
    version: "",
    image: "engine:1",
    imageDigest: "",
    generation: 1,
    models: [],
    startedAt: null,
    restartCount: 0,
    lastExit: null,
    message: "",
    ...changes,
  };
}

describe("the reason why an engine takes no calls", () => {
  test.each<[NodeStatus, string]>([
    ["provisioning", "Node `box` has no daemon yet: Said so."],
    ["bootstrapping", "Node `box` has no daemon yet: Said so."],
    ["unreachable", "Node `box` has been unreachable since 2026-01-02T03:04:05.000Z. Said so."],
    ["draining", "Node `box` has been draining since 2026-01-02T03:04:05.000Z: Said so."],
    ["drained", "Node `box` has been drained since 2026-01-02T03:04:05.000Z: Said so."],
    ["failed", "Node `box` failed at 2026-01-02T03:04:05.000Z: Said so."],
    ["deleting", "Node `box` is being deleted."],
  ])("names the node's status %s, whatever the engine reported last", (status, words) => {
    expect(engineAbsence(node(status), report("running", { ready: true }))).toBe(words);
  });

  test.each<[WorkloadState, string, string]>([
    ["pending", "", "The engine of node `box` is being installed (since 2026-01-02T03:04:05.000Z)."],
    [
      "pulling",
      "pulling engine:1: 50 %",
      "The engine of node `box` is being installed (since 2026-01-02T03:04:05.000Z): pulling engine:1: 50 %",
    ],
    [
      "starting",
      "loading the model",
      "The engine of node `box` is starting (since 2026-01-02T03:04:05.000Z): loading the model",
    ],
    ["stopping", "", "The engine of node `box` is being restarted (since 2026-01-02T03:04:05.000Z)."],
    [
      "backing-off",
      "killed (signal 9)",
      "The engine of node `box` has exited and is being restarted (since 2026-01-02T03:04:05.000Z): killed (signal 9)",
    ],
    ["failed", "no disk", "The engine of node `box` cannot be started (since 2026-01-02T03:04:05.000Z): no disk"],
    [
      "running",
      "/health answered 500",
      "The engine of node `box` is running, but does not respond (since 2026-01-02T03:04:05.000Z): /health answered 500",
    ],
    [
      "unknown",
      "",
      "Docker does not respond on node `box`, so its engine cannot be reached (since 2026-01-02T03:04:05.000Z).",
    ],
  ])("names the engine's state %s (%j)", (state, message, words) => {
    expect(engineAbsence(node("degraded"), report(state, { message }))).toBe(words);
  });

  test("says that the engine has not been reported yet", () => {
    expect(engineAbsence(node("starting"), undefined)).toBe("The engine of node `box` has not been reported yet.");
  });

  test("is null only for a ready engine on an active or degraded node", () => {
    const serving = NODE_STATUSES.filter((s) => engineAbsence(node(s), report("running", { ready: true })) === null);
    expect(serving).toEqual(["active", "degraded"]);
    // Docker's silence alone stops no calls.
    expect(engineAbsence(node("active"), report("unknown", { ready: true }))).toBeNull();
  });

  test("is limited in length, however long the node's message is", () => {
    expect(engineAbsence(node("unreachable", "x".repeat(5000)), undefined)?.length).toBeLessThanOrEqual(500);
  });
});
