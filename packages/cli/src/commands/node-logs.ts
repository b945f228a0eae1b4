import type { Command } from "commander";
import { z } from "zod";
import { CliError } from "../cli-error.ts";
import { addPlatformOptions, addProjectOption, type ClientOptions, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { readEvents } from "../event-stream.ts";
import { send } from "../http-client.ts";
import { parseLimit } from "../list-all.ts";
import { readMoment } from "../moment.ts";
import { NODE_ARGUMENT, nodeIdOf, nodePath } from "../nodes/node-reference.ts";
import { visibleLines } from "../visible.ts";

interface LogOptions extends ClientOptions {
  readonly follow?: boolean;
  readonly since?: string;
  readonly tail?: number;
  readonly timestamps?: boolean;
}

const lineSchema = z.object({ at: z.string(), stream: z.string(), text: z.string() });
type Line = z.infer<typeof lineSchema>;

/** `fairlead node logs NODE`. */
export function addNodeLogsCommand(node: Command, context: Context): void {
  addProjectOption(addPlatformOptions(node.command("logs")))
    .description("show what a node's engine prints")
    .argument(...NODE_ARGUMENT)
    .option("-f, --follow", "wait for more, through restarts and updates, until Ctrl-C")
    .option("--since <time>", "from this time on: 10m (ago), 2026-12-31 or 2026-12-31T18:00:00Z")
    .option("--tail <number>", "only so many of the last lines", parseLimit)
    .option("--timestamps", "put before each line when it was printed")
    .addHelpText(
      "after",
      "\nStandard error lines are among them. For owners and administrators: engines may print what they were asked.\n" +
        "\nExamples:\n  fairlead node logs attic --tail 100\n  fairlead node logs attic --follow --since 10m",
    )
    .action((name: string, options: LogOptions) => showLogs(context, name, options));
}

async function showLogs(context: Context, name: string, options: LogOptions): Promise<void> {
  const { terminal, clock } = context;
  const host = platformHost(context, options);
  const id = await nodeIdOf(host, name);
  const { follow = false, since, tail } = options;
  const query = new URLSearchParams({ follow: String(follow) });
  if (since !== undefined) query.set("since", readMoment(since, { now: clock.now(), durations: "ago", days: "begin" }));
  if (tail !== undefined) query.set("tail", String(tail));
  const stop = new AbortController();
  const release = terminal.onInterrupt(() => stop.abort());
  try {
    const path = `${nodePath(id)}/logs?${query.toString()}`;
    const response = await send(host, { path, headers: { accept: "text/event-stream" }, signal: stop.signal });
    if (response.body === null) throw new CliError("The platform host answered without any logs.");
    for await (const event of readEvents(response.body)) terminal.out(lineText(lineSchema.parse(event), options));
  } catch (error) {
    // Whoever follows ends it with Ctrl-C.
    if (!stop.signal.aborted) throw error;
  } finally {
    release();
  }
}

function lineText(line: Line, { json, timestamps }: LogOptions): string {
  if (json) return `${JSON.stringify(line)}\n`;
  return `${timestamps ? `${line.at} ` : ""}${visibleLines(line.text)}\n`;
}
