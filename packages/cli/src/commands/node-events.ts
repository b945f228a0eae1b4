import { type NodeEvent, nodeEventSchema } from "@fairlead/protocol/resources";
import type { Command } from "commander";
import { addPlatformOptions, addProjectOption, type ClientOptions, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { addLimitOption, type ListOptions, listAll } from "../list-all.ts";
import { readMoment } from "../moment.ts";
import { NODE_ARGUMENT, nodeIdOf, nodePath } from "../nodes/node-reference.ts";
import { print } from "../output.ts";
import { formatTable } from "../table.ts";

interface EventOptions extends ClientOptions, ListOptions {
  readonly kind?: string;
  readonly since?: string;
}

/** A history has no natural end that somebody waits for. */
const NEWEST = 50;

/** `fairlead node events NODE`: why did it restart? */
export function addNodeEventsCommand(node: Command, context: Context): void {
  addLimitOption(addProjectOption(addPlatformOptions(node.command("events"))), NEWEST)
    .description("show what happened to a node and why, the newest last")
    .argument(...NODE_ARGUMENT)
    .option("--kind <kinds>", "these kinds alone, with commas between them")
    .option("--since <time>", "from this time on: 2h (ago), 2026-12-31 or 2026-12-31T18:00:00Z")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead node events attic --since 1d\n" +
        "  fairlead node events attic --kind workload_exited,workload_stopped,workload_started   # why did it restart?",
    )
    .action((name: string, options: EventOptions) => showEvents(context, name, options));
}

async function showEvents(context: Context, name: string, options: EventOptions): Promise<void> {
  const host = platformHost(context, options);
  const id = await nodeIdOf(host, name);
  const { kind, since } = options;
  const now = context.clock.now();
  const query = { kind, since: since && readMoment(since, { now, durations: "ago", days: "begin" }) };
  const list = { path: `${nodePath(id)}/events`, field: "events", item: nodeEventSchema, query };
  const events = (await listAll(host, list, options)).reverse();
  print(context.terminal, { events }, { json: options.json, text: (answer) => eventTable(answer.events) });
}

function eventTable(events: readonly NodeEvent[]): string {
  if (events.length === 0) return "nothing happened that fits\n";
  const rows = events.map(({ at, kind, status, message }) => [at, kind, status ?? "", message]);
  return formatTable(["TIME", "WHAT", "STATUS", "WHY"], rows);
}
