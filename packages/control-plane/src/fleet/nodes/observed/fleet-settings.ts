import { z } from "zod";
import { DEFAULT_NODE_LIVENESS, type NodeLivenessOptions } from "./node-liveness.ts";

const count = (max: number): z.ZodNumber => z.number().int().min(1).max(max);

/** `fleet` in the config. */
export const fleetSettings = z
  .strictObject({
    heartbeatsPerSecond: count(100_000)
      .default(DEFAULT_NODE_LIVENESS.heartbeatsPerSecond)
      .describe(
        "Maximum number of heartbeats per second, across all nodes. In a larger fleet, each node sends them less often.",
      ),
    minHeartbeatSeconds: count(3600)
      .default(DEFAULT_NODE_LIVENESS.minHeartbeatSeconds)
      .describe("Seconds between heartbeats of a node, if the fleet is small enough for it."),
    missedHeartbeats: z
      .number()
      .int()
      .min(2)
      .max(100)
      .default(DEFAULT_NODE_LIVENESS.missedBeats)
      .describe("Number of missed heartbeats after which a node is `unreachable`."),
    brakePercent: count(100)
      .default(DEFAULT_NODE_LIVENESS.brakeShare * 100)
      .describe(
        "Percentage of the fleet. If more nodes than this (and at least three) go silent at the same time, the server assumes a fault in itself or in its " +
          "network and marks no node `unreachable`. 100: disabled.",
      ),
    brakeMinutes: count(10_080)
      .default(DEFAULT_NODE_LIVENESS.brakeMs / 60_000)
      .describe(
        "Maximum time for which `unreachable` marks are suspended in this way while other nodes send heartbeats.",
      ),
    connectsPerSecond: count(100_000)
      .default(200)
      .describe(
        "Maximum number of daemon links opened per second, and the same number of tunnels. Other daemons receive the time of their next attempt.",
      ),
  })
  .prefault({});

export type FleetSettings = z.output<typeof fleetSettings>;

export function livenessOptions(fleet: FleetSettings): NodeLivenessOptions {
  const { heartbeatsPerSecond, minHeartbeatSeconds, missedHeartbeats, brakePercent, brakeMinutes } = fleet;
  return {
    ...DEFAULT_NODE_LIVENESS,
    heartbeatsPerSecond,
    minHeartbeatSeconds,
    missedBeats: missedHeartbeats,
    brakeShare: brakePercent / 100,
    brakeMs: brakeMinutes * 60_000,
  };
}
