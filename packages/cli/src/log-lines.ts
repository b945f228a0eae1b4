import type { Command } from "commander";
import { z } from "zod";
import { CliError } from "./cli-error.ts";
import type { ClientOptions, Platform } from "./client-options.ts";
import type { Context } from "./context.ts";
import { readEvents } from "./event-stream.ts";
import { send } from "./http-client.ts";
import { parseLimit } from "./list-all.ts";
import { readMoment } from "./moment.ts";
import { visibleLines } from "./visible.ts";

/** What a workload prints, as the platform host streams it. */

export interface LogOptions extends ClientOptions {
  readonly follow?: boolean;
  readonly since?: string;
  readonly tail?: number;
  readonly timestamps?: boolean;
}

const lineSchema = z.object({ at: z.string(), stream: z.string(), text: z.string() });
type Line = z.infer<typeof lineSchema>;

export function addLogOptions(command: Command): Command {
  return command
    .option("-f, --follow", "wait for more, through restarts and updates, until Ctrl-C")
    .option("--since <time>", "from this time on: 10m (ago), 2026-12-31 or 2026-12-31T18:00:00Z")
    .option("--tail <number>", "only so many of the last lines", parseLimit)
    .option("--timestamps", "put before each line when it was printed");
}

/** @param path of the logs. Ends with them, or by Ctrl-C. */
export async function printLogs(
  { terminal, clock }: Context,
  { host, path }: { readonly host: Platform; readonly path: string },
  options: LogOptions,
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
