import type { Registry } from "prom-client";
import type { TurnCounters } from "../chat/turn-counters.ts";
import { counter, gauge, type Sample } from "./metric-kinds.ts";

export interface ChatMetricSources {
  readonly turnCounters: Pick<TurnCounters, "running" | "turns">;
}

/** The figures of turns in chat sessions; the calls that they make are among those of the inference host. */
export function addChat(registry: Registry, { turnCounters }: ChatMetricSources): void {
  gauge(registry, "fairlead_chat_turns_running", {
    help: "Turns of chat sessions that run.",
    read: () => [[{}, turnCounters.running]],
  });

  counter(registry, "fairlead_chat_turns_total", {
    help:
      "Turns by how they ended: `completed`, `client_left`, `stopped`, `refused` (the call was at fault, or a limit), `failed`, " +
      "`replayed` (a repeat), `new_session`.",
    labelNames: ["outcome"],
    read: () => Array.from(turnCounters.turns(), ([outcome, count]): Sample => [{ outcome }, count]),
  });
}
