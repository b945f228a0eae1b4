import { z } from "zod";
import { DEFAULT_LIVENESS, type LivenessOptions } from "./node-liveness.ts";

const count = (max: number): z.ZodNumber => z.number().int().min(1).max(max);

/** `fleet` in the config. */
export const fleetSettings = z
  .strictObject({
    heartbeatsPerSecond: count(100_000)
      .default(DEFAULT_LIVENESS.heartbeatsPerSecond)
      .describe(
        "Heartbeats of all nodes together within a second; in a larger fleet each node sends them more seldom.",
      ),
    minHeartbeatSeconds: count(3600)
      .default(DEFAULT_LIVENESS.minHeartbeatSeconds)
      .describe("Seconds between two heartbeats of one node, in a fleet that is small enough for it."),
    missedHeartbeats: z
      .number()
      .int()
      .min(2)
      .max(100)
      .default(DEFAULT_LIVENESS.missedBeats)
      .describe("Missed heartbeats after which a node is `unreachable`."),
    brakePercent: count(100)
      .default(DEFAULT_LIVENESS.brakeShare * 100)
      .describe(
        "The brake: when more than this share of the nodes (and three at least) goes quiet at once, the server suspects itself or its own " +
          "network, and makes no node `unreachable`. 100: no brake.",
      ),
    brakeMinutes: count(10_080)
      .default(DEFAULT_LIVENESS.brakeMs / 60_000)
      .describe("How long the brake holds at most while other nodes are heard."),
    connectsPerSecond: count(100_000)
      .default(200)
      .describe(
        "Daemon links, and as many tunnels, that are opened within a second. Further daemons are told when to come back.",
      ),
  })
  .prefault({});

export type FleetSettings = z.output<typeof fleetSettings>;

export function livenessOptions(fleet: FleetSettings): LivenessOptions {
  const { heartbeatsPerSecond, minHeartbeatSeconds, missedHeartbeats, brakePercent, brakeMinutes } = fleet;
  return {
    ...DEFAULT_LIVENESS,
    heartbeatsPerSecond,
    minHeartbeatSeconds,
    missedBeats: missedHeartbeats,
    brakeShare: brakePercent / 100,
    brakeMs: brakeMinutes * 60_000,
  };
}
