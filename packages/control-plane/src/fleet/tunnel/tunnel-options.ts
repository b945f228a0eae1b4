import type { Clock } from "@fairlead/protocol/values/clock";
import type { LivenessOptions } from "@fairlead/wire/liveness";
import type { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";

export interface TunnelOptions {
  readonly liveness: LivenessOptions;
  readonly clock: Pick<Clock, "monotonic">;
  readonly bounds: Pick<BoundCounters, "reached">;
}
