import type { Registry } from "prom-client";
import type { TurnCounters } from "../../chat/turns/turn-counters.ts";
import { counter, gauge, type Sample } from "./metric-kinds.ts";

export interface ChatMetricSources {
  readonly turnCounters: Pick<TurnCounters, "running" | "turns">;
}

/** Metrics of chat turns; their calls are counted by the inference host's metrics. */
export function addChat(registry: Registry, { turnCounters }: ChatMetricSources): void {
  gauge(registry, "fairlead_chat_turns_running", {
    help: "Running turns of chat sessions.",
    read: () => [[{}, turnCounters.running]],
  });

  counter(registry, "fairlead_chat_turns_total", {
    help:
      "Turns by outcome: `completed`, `client_left`, `stopped`, `refused` (an invalid call, or a limit), `failed`, " +
      "`replayed` (a retry), `new_session`.",
    labelNames: ["outcome"],
    read: () => Array.from(turnCounters.turns(), ([outcome, count]): Sample => [{ outcome }, count]),
  });
}
