import type { Command } from "commander";
import type { z } from "zod";
import type { ClientOptions, Platform } from "./client-options.ts";
import type { Context } from "./context.ts";
import { addLimitOption, type ListOptions, listAll } from "./list-all.ts";
import { readMoment } from "./moment.ts";
import { print } from "./output.ts";
import { formatTable } from "./table.ts";

/** What happened to a resource and why. */

export interface HistoryOptions extends ClientOptions, ListOptions {
  readonly kind?: string;
  readonly since?: string;
}

/** A line of a history. */
export interface HistoryEvent {
  readonly id: string;
  readonly at: string;
  readonly kind: string;
  readonly message: string;
}

export interface History<E extends HistoryEvent> {
  readonly host: Platform;
  readonly path: string;
  readonly item: z.ZodType<E>;
  /** The state that it entered then; null: none. */
  readonly stateOf: (event: E) => string | null;
}

/** A history has no natural end that somebody waits for. */
const NEWEST = 50;

export function addHistoryOptions(command: Command): Command {
  return addLimitOption(command, NEWEST)
    .option("--kind <kinds>", "these kinds alone, with commas between them")
    .option("--since <time>", "from this time on: 2h (ago), 2026-12-31 or 2026-12-31T18:00:00Z");
}

/** The newest last. */
export async function printHistory<E extends HistoryEvent>(
  { terminal, clock }: Context,
  { host, path, item, stateOf }: History<E>,
  options: HistoryOptions,
): Promise<void> {
  const { kind, since } = options;
  const now = clock.now();
  const query = { kind, since: since && readMoment(since, { now, durations: "ago", days: "begin" }) };
  const events = (await listAll(host, { path, field: "events", item, query }, options)).reverse();
  const rows = events.map((event) => [event.at, event.kind, stateOf(event) ?? "", event.message]);
  const text =
    rows.length === 0 ? "nothing happened that fits\n" : formatTable(["TIME", "WHAT", "STATUS", "WHY"], rows);
  print(terminal, { events }, { json: options.json, text: () => text });
}
