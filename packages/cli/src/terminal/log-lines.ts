import type { Command } from "commander";
import { z } from "zod";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../context.ts";
import { readMoment } from "../input/moment.ts";
import type { ClientOptions, PlatformConnection } from "../platform/client-options.ts";
import { send } from "../platform/http-client.ts";
import { readEvents } from "./event-stream.ts";
import { parseLimit } from "./list-all.ts";
import { visibleLines } from "./visible.ts";

/** Prints the logs of a workload, streamed by the platform host. */

export interface LogLineOptions extends ClientOptions {
  readonly follow?: boolean;
  readonly since?: string;
  readonly tail?: number;
  readonly timestamps?: boolean;
}

const lineSchema = z.object({ at: z.string(), stream: z.string(), text: z.string() });
type Line = z.infer<typeof lineSchema>;

export function addLogOptions(command: Command): Command {
  return command
    .option("-f, --follow", "keep printing new lines, across restarts and updates, until Ctrl-C")
    .option("--since <time>", "start time: 10m (ago), 2026-12-31 or 2026-12-31T18:00:00Z")
    .option("--tail <number>", "number of lines to print from the end", parseLimit)
    .option("--timestamps", "prefix each line with its time");
}

/** Prints until the logs end or Ctrl-C. @param path of the logs route. */
export async function printLogs(
  { terminal, clock }: CommandContext,
  { host, path }: { readonly host: PlatformConnection; readonly path: string },
  options: LogLineOptions,
): Promise<void> {
  const { follow = false, since, tail } = options;
  const query = new URLSearchParams({ follow: String(follow) });
  if (since !== undefined) query.set("since", readMoment(since, { now: clock.now(), durations: "ago", days: "begin" }));
  if (tail !== undefined) query.set("tail", String(tail));
  const stop = new AbortController();
  const release = terminal.onInterrupt(() => stop.abort());
  try {
    const call = { path: `${path}?${query.toString()}`, headers: { accept: "text/event-stream" }, signal: stop.signal };
    const response = await send(host, call);
    if (response.body === null) throw new CliError("The platform host returned an empty response.");
    for await (const event of readEvents(response.body)) terminal.out(lineText(lineSchema.parse(event), options));
  } catch (error) {
    // Ctrl-C is the normal end of --follow.
    if (!stop.signal.aborted) throw error;
  } finally {
    release();
  }
}

function lineText(line: Line, { json, timestamps }: LogLineOptions): string {
  if (json) return `${JSON.stringify(line)}\n`;
  return `${timestamps ? `${line.at} ` : ""}${visibleLines(line.text)}\n`;
}
