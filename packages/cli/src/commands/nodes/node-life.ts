import { type Node, nodeSchema } from "@fairlead/protocol/resources";
import { type Command, InvalidArgumentError } from "commander";
import { UsageError } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import { isDuration, parseDuration } from "../../input/duration.ts";
import { addUnsetVariableOption } from "../../input/variables.ts";
import { addEngineOptions, type EngineOptions, readEngineConfig } from "../../nodes/engine-config-input.ts";
import { NODE_ARGUMENT, nodeIdOf, nodePath } from "../../nodes/node-reference.ts";
import { nodeText } from "../../nodes/node-tables.ts";
import { isUpToDate, watchNode } from "../../nodes/node-watch.ts";
import { type ProviderTokenOptions, readProviderToken } from "../../nodes/provider-token-input.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type PlatformConnection,
  platformHost,
} from "../../platform/client-options.ts";
import { type Call, callJson } from "../../platform/http-client.ts";
import { print } from "../../terminal/output.ts";
import { addWaitOptions, newestEvent, type WaitOptions, waits } from "../../terminal/watch.ts";

interface UpdateOptions extends WaitOptions, EngineOptions, ProviderTokenOptions {
  readonly name?: string;
}

interface DrainOptions extends WaitOptions {
  readonly timeout?: number;
}

/** `fairlead node update|drain|resume|restart NODE`. */
export function addNodeLifeCommands(node: Command, context: CommandContext): void {
  const command = (name: string): Command =>
    addProjectOption(addPlatformOptions(node.command(name))).argument(...NODE_ARGUMENT);
  const update = addUnsetVariableOption(addEngineOptions(command("update")));
  update
    .option("--name <name>", "new name; the identifier does not change")
    .option("--provider-token-file <file>", "file with a new API token for the machine's provider, or - for stdin");
  addWaitOptions(update, "it is running and ready")
    .description("change a node's engine or name; the new engine takes over when it is ready, or is rolled back")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead node update local --image ghcr.io/example/engine:3\n" +
        "  fairlead node update local --env CONTEXT=8192 --unset-env DEBUG\n" +
        "  fairlead node update local --engine-config engine.yaml --no-wait",
    )
    .action((name: string, options: UpdateOptions) => updateNode(context, name, options));
  addWaitOptions(command("drain"), "it is drained")
    .description("take a node out of service: no new calls, agents stop, running calls finish, then the engine stops")
    .option(
      "--timeout <duration>",
      "how long to wait for running calls: 90s, 30m, or 0 for not at all (default: 5m)",
      toSeconds,
    )
    .addHelpText("after", "\nExample:\n  fairlead node drain local --timeout 30m")
    .action((name: string, options: DrainOptions) => drainNode(context, name, options));
  addWaitOptions(command("resume"), "it is active")
    .description("return a drained node to service, or cancel a drain in progress")
    .addHelpText("after", "\nExample:\n  fairlead node resume local")
    .action((name: string, options: WaitOptions) => resumeNode(context, name, options));
  addWaitOptions(command("restart"), "the new engine is ready")
    .description("restart a node's engine (rolling); with the start-first strategy no call fails")
    .addHelpText("after", "\nExample:\n  fairlead node restart local")
    .action((name: string, options: WaitOptions) => restartNode(context, name, options));
}

function toSeconds(text: string): number {
  if (text === "0") return 0;
  if (!isDuration(text)) throw new InvalidArgumentError("Must be a duration such as 90s, 30m or 2h, or 0.");
  return parseDuration(text);
}

async function updateNode(context: CommandContext, name: string, options: UpdateOptions): Promise<void> {
  const host = platformHost(context, options);
  const id = await nodeIdOf(host, name);
  const { engineConfig: before } = await callJson(host, { path: nodePath(id) }, nodeSchema);
  const engineConfig = await readEngineConfig(context.terminal, options, before);
  const changes = {
    ...(options.name === undefined ? {} : { name: options.name }),
    ...(engineConfig === null ? {} : { engineConfig }),
  };
  const updateMask = Object.keys(changes).join(",");
  const { providerTokenFile } = options;
  const providerToken = providerTokenFile === undefined ? undefined : await readProviderToken(context, options);
  if (updateMask === "" && providerToken === undefined)
    throw new UsageError("nothing to change: set an option such as --image or --engine-config FILE");
  const body = {
    ...(updateMask === "" ? {} : { node: changes, updateMask }),
    ...(providerToken === undefined ? {} : { providerToken }),
  };
  const call = { method: "PATCH", path: nodePath(id), body } as const;
  // A new token does not affect workloads.
  const wait = updateMask === "" ? { ...options, wait: false } : options;
  await askAndWatch(context, { host, id, call, until: isUpToDate }, wait);
}

async function drainNode(context: CommandContext, name: string, options: DrainOptions): Promise<void> {
  const host = platformHost(context, options);
  const id = await nodeIdOf(host, name);
  const body = options.timeout === undefined ? {} : { timeoutSeconds: options.timeout };
  const call = { method: "POST", path: `${nodePath(id)}:drain`, body } as const;
  await askAndWatch(context, { host, id, call, until: ({ status }) => status === "drained" }, options);
}

async function resumeNode(context: CommandContext, name: string, options: WaitOptions): Promise<void> {
  const host = platformHost(context, options);
  const id = await nodeIdOf(host, name);
  const call = { method: "POST", path: `${nodePath(id)}:resume`, body: {} } as const;
  await askAndWatch(context, { host, id, call, until: ({ status }) => status === "active" }, options);
}

async function restartNode(context: CommandContext, name: string, options: WaitOptions): Promise<void> {
  const host = platformHost(context, options);
  const id = await nodeIdOf(host, name);
  const idempotencyKey = context.ids.next("request");
  const call = { method: "POST", path: `${nodePath(id)}:restart-workload`, body: {}, idempotencyKey } as const;
  await askAndWatch(context, { host, id, call, until: isUpToDate }, options);
}

interface Asking {
  readonly host: PlatformConnection;
  readonly id: string;
  readonly call: Call;
  readonly until: (node: Node) => boolean;
}

async function askAndWatch(
  context: CommandContext,
  { host, id, call, until }: Asking,
  options: WaitOptions,
): Promise<void> {
  const after = await newestEvent(host, nodePath(id));
  const asked = await callJson(host, call, nodeSchema);
  const node = waits(context.terminal, options) ? await watchNode(context, host, { id, after, until }) : asked;
  print(context.terminal, node, { json: options.json, text: nodeText });
}
