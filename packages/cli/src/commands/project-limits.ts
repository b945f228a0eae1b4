import { type ProjectLimits, projectLimitsSchema } from "@fairlead/protocol/resources";
import { type Command, InvalidArgumentError } from "commander";
import { UsageError } from "../cli-error.ts";
import { addPlatformOptions, type ClientOptions, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import { print } from "../output.ts";
import { formatTable } from "../table.ts";

/** How much all calls of a project together may do; each key has limits of its own besides. */

interface SetOptions extends ClientOptions {
  readonly requestsPerMinute?: LimitOption;
  readonly tokensPerMinute?: LimitOption;
  readonly parallelCalls?: LimitOption;
}

/** Not null yet: commander takes that for an empty text. */
type LimitOption = number | "default";

const LIMITS = [
  ["requestsPerMinute", "calls in a minute"],
  ["tokensPerMinute", "tokens in a minute"],
  ["parallelCalls", "calls at once"],
] as const;

export function addProjectLimitCommands(project: Command, context: Context): void {
  const limits = project.command("limits").description("how much all calls of a project together may do");
  addPlatformOptions(limits.command("show"))
    .description("show a project's own limits, and what counts")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead project limits show $FAIRLEAD_PROJECT_ID")
    .action((id: string, options: ClientOptions) => showLimits(context, id, options));
  addPlatformOptions(limits.command("set"))
    .description("change a project's limits; what is not named stays")
    .argument("<id>")
    .option("--requests-per-minute <number>", "a whole number, or default: as the server's settings say", parseLimit)
    .option("--tokens-per-minute <number>", "the same", parseLimit)
    .option("--parallel-calls <number>", "the same", parseLimit)
    .addHelpText(
      "after",
      "\nExample:\n  fairlead project limits set $FAIRLEAD_PROJECT_ID --requests-per-minute 600 --parallel-calls default",
    )
    .action((id: string, options: SetOptions) => setLimits(context, id, options));
}

const pathOf = (id: string): string => `/v1/projects/${encodeURIComponent(id)}/limits`;

async function showLimits(context: Context, id: string, options: ClientOptions): Promise<void> {
  const limits = await callJson(platformHost(context, options), { path: pathOf(id) }, projectLimitsSchema);
  print(context.terminal, limits, { json: options.json, text: table });
}

async function setLimits(context: Context, id: string, options: SetOptions): Promise<void> {
  const change = LIMITS.flatMap(([name]) => {
    const value = options[name];
    return value === undefined ? [] : [[name, value === "default" ? null : value]];
  });
  if (change.length === 0) throw new UsageError("name a limit to change, such as --requests-per-minute 600");
  const call = { method: "PATCH", path: pathOf(id), body: Object.fromEntries(change) } as const;
  const limits = await callJson(platformHost(context, options), call, projectLimitsSchema);
  print(context.terminal, limits, { json: options.json, text: table });
}

function table(limits: ProjectLimits): string {
  const rows = LIMITS.map(([name, what]) => [
    what,
    String(limits.effective[name] ?? "no limit"),
    limits[name] === null ? "the server's" : "the project's own",
  ]);
  return formatTable(["LIMIT", "", "WHOSE"], rows);
}

function parseLimit(text: string): LimitOption {
  if (text === "default") return text;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("Write a whole number of 1 or more, or default.");
  return Number(text);
}
