import type { Command } from "commander";
import type { z } from "zod";
import type { CommandContext } from "../context.ts";
import { readMoment } from "../input/moment.ts";
import type { ClientOptions, PlatformConnection } from "../platform/client-options.ts";
import { addLimitOption, type ListOptions, listAll } from "./list-all.ts";
import { print } from "./output.ts";
import { formatTable } from "./table.ts";

/** Prints the events of a resource. */

export interface HistoryOptions extends ClientOptions, ListOptions {
  readonly kind?: string;
  readonly since?: string;
}

/** The common fields of events. */
export interface HistoryEvent {
  readonly id: string;
  readonly at: string;
  readonly kind: string;
  readonly message: string;
}

export interface History<E extends HistoryEvent> {
  readonly host: PlatformConnection;
  readonly path: string;
  readonly item: z.ZodType<E>;
  /** The state entered with the event, or null. */
  readonly stateOf: (event: E) => string | null;
}

/** The list of events can be arbitrarily long. */
const NEWEST = 50;

export function addHistoryOptions(command: Command): Command {
  return addLimitOption(command, NEWEST)
    .option("--kind <kinds>", "only these kinds, comma-separated")
    .option("--since <time>", "start time: 2h (ago), 2026-12-31 or 2026-12-31T18:00:00Z");
}

/** Newest last. */
export async function printHistory<E extends HistoryEvent>(
  { terminal, clock }: CommandContext,
  { host, path, item, stateOf }: History<E>,
  options: HistoryOptions,
): Promise<void> {
  const { kind, since } = options;
  const now = clock.now();
  const query = { kind, since: since && readMoment(since, { now, durations: "ago", days: "begin" }) };
  const events = (await listAll(host, { path, field: "events", item, query }, options)).reverse();
  const rows = events.map((event) => [event.at, event.kind, stateOf(event) ?? "", event.message]);
  const text = rows.length === 0 ? "no matching events\n" : formatTable(["TIME", "KIND", "STATUS", "MESSAGE"], rows);
  print(terminal, { events }, { json: options.json, text: () => text });
}
