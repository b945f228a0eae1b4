import { type ProjectLimits, projectLimitsSchema } from "@fairlead/protocol/resources";
import { type Command, InvalidArgumentError } from "commander";
import { UsageError } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import { addPlatformOptions, type ClientOptions, platformHost } from "../../platform/client-options.ts";
import { callJson } from "../../platform/http-client.ts";
import { print } from "../../terminal/output.ts";
import { formatTable } from "../../terminal/table.ts";

/** Limits on all calls of a project together; keys also have their own. */

interface SetOptions extends ClientOptions {
  readonly requestsPerMinute?: LimitOption;
  readonly tokensPerMinute?: LimitOption;
  readonly parallelCalls?: LimitOption;
}

/** "default", because commander treats null as an empty string. */
type LimitOption = number | "default";

const LIMITS = [
  ["requestsPerMinute", "requests per minute"],
  ["tokensPerMinute", "tokens per minute"],
  ["parallelCalls", "parallel calls"],
] as const;

export function addProjectLimitCommands(project: Command, context: CommandContext): void {
  const limits = project.command("limits").description("limits on all calls of a project together");
  addPlatformOptions(limits.command("show"))
    .description("show a project's effective limits and where they are set")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead project limits show $FAIRLEAD_PROJECT_ID")
    .action((id: string, options: ClientOptions) => showLimits(context, id, options));
  addPlatformOptions(limits.command("set"))
    .description("change a project's limits; omitted limits are unchanged")
    .argument("<id>")
    .option("--requests-per-minute <number>", "an integer, or default for the server's setting", parseLimit)
    .option("--tokens-per-minute <number>", "an integer, or default", parseLimit)
    .option("--parallel-calls <number>", "an integer, or default", parseLimit)
    .addHelpText(
      "after",
      "\nExample:\n  fairlead project limits set $FAIRLEAD_PROJECT_ID --requests-per-minute 600 --parallel-calls default",
    )
    .action((id: string, options: SetOptions) => setLimits(context, id, options));
}

const pathOf = (id: string): string => `/v1/projects/${encodeURIComponent(id)}/limits`;

async function showLimits(context: CommandContext, id: string, options: ClientOptions): Promise<void> {
  const limits = await callJson(platformHost(context, options), { path: pathOf(id) }, projectLimitsSchema);
  print(context.terminal, limits, { json: options.json, text: table });
}

async function setLimits(context: CommandContext, id: string, options: SetOptions): Promise<void> {
  const change = LIMITS.flatMap(([name]) => {
    const value = options[name];
    return value === undefined ? [] : [[name, value === "default" ? null : value]];
  });
  if (change.length === 0) throw new UsageError("nothing to change: set a limit such as --requests-per-minute 600");
  const call = { method: "PATCH", path: pathOf(id), body: Object.fromEntries(change) } as const;
  const limits = await callJson(platformHost(context, options), call, projectLimitsSchema);
  print(context.terminal, limits, { json: options.json, text: table });
}

function table(limits: ProjectLimits): string {
  const rows = LIMITS.map(([name, what]) => [
    what,
    String(limits.effective[name] ?? "no limit"),
    limits[name] === null ? "server" : "project",
  ]);
  return formatTable(["LIMIT", "VALUE", "SET BY"], rows);
}

function parseLimit(text: string): LimitOption {
  if (text === "default") return text;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("Must be an integer of 1 or more, or default.");
  return Number(text);
}
