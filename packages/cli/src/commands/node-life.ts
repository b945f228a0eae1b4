import { type Node, nodeSchema } from "@fairlead/protocol/resources";
import { type Command, InvalidArgumentError } from "commander";
import { UsageError } from "../cli-error.ts";
import { addPlatformOptions, addProjectOption, type Platform, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { isDuration, parseDuration } from "../duration.ts";
import { type Call, callJson } from "../http-client.ts";
import { addEngineOptions, type EngineOptions, readEngineConfig } from "../nodes/engine-config-input.ts";
import { NODE_ARGUMENT, nodeIdOf, nodePath } from "../nodes/node-reference.ts";
import { nodeText } from "../nodes/node-tables.ts";
import { isUpToDate, watchNode } from "../nodes/node-watch.ts";
import { type ProviderTokenOptions, readProviderToken } from "../nodes/provider-token-input.ts";
import { print } from "../output.ts";
import { addUnsetVariableOption } from "../variables.ts";
import { addWaitOptions, newestEvent, type WaitOptions, waits } from "../watch.ts";

interface UpdateOptions extends WaitOptions, EngineOptions, ProviderTokenOptions {
  readonly name?: string;
}

interface DrainOptions extends WaitOptions {
  readonly timeout?: number;
}

/** `fairlead node update|drain|resume|restart NODE`. */
export function addNodeLifeCommands(node: Command, context: Context): void {
  const command = (name: string): Command =>
    addProjectOption(addPlatformOptions(node.command(name))).argument(...NODE_ARGUMENT);
  const update = addUnsetVariableOption(addEngineOptions(command("update")));
  update
    .option("--name <name>", "another name; the identifier stays")
    .option("--provider-token-file <file>", "another API token at the machine's provider; - for standard input");
  addWaitOptions(update, "it runs and is ready")
    .description("change a node's engine or name; a new engine takes over once it is ready, or is rolled back")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead node update attic --image ghcr.io/example/engine:3\n" +
        "  fairlead node update attic --env CONTEXT=8192 --unset-env DEBUG\n" +
        "  fairlead node update attic --engine-config engine.yaml --no-wait",
    )
    .action((name: string, options: UpdateOptions) => updateNode(context, name, options));
  addWaitOptions(command("drain"), "it is drained")
    .description("take a node out of service: no new calls, its agents stop, running calls end, then its engine stops")
    .option(
      "--timeout <duration>",
      "how long running calls are waited for: 90s, 30m; 0: not at all (default: 5m)",
      toSeconds,
    )
    .addHelpText("after", "\nExample:\n  fairlead node drain attic --timeout 30m")
    .action((name: string, options: DrainOptions) => drainNode(context, name, options));
  addWaitOptions(command("resume"), "it is active")
    .description("put a drained node back into service, or call off a drain that still runs")
    .addHelpText("after", "\nExample:\n  fairlead node resume attic")
    .action((name: string, options: WaitOptions) => resumeNode(context, name, options));
  addWaitOptions(command("restart"), "the new one is ready")
    .description("start a node's engine anew, by the way of an update: with start-first no call fails")
    .addHelpText("after", "\nExample:\n  fairlead node restart attic")
    .action((name: string, options: WaitOptions) => restartNode(context, name, options));
}

function toSeconds(text: string): number {
  if (text === "0") return 0;
  if (!isDuration(text)) throw new InvalidArgumentError("Write 90s, 30m, 2h, or 0.");
  return parseDuration(text);
}

async function updateNode(context: Context, name: string, options: UpdateOptions): Promise<void> {
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
    throw new UsageError("say what to change, such as --image or --engine-config FILE");
  const body = {
    ...(updateMask === "" ? {} : { node: changes, updateMask }),
    ...(providerToken === undefined ? {} : { providerToken }),
  };
  const call = { method: "PATCH", path: nodePath(id), body } as const;
  // Another token changes nothing that runs.
  const wait = updateMask === "" ? { ...options, wait: false } : options;
  await askAndWatch(context, { host, id, call, until: isUpToDate }, wait);
}

async function drainNode(context: Context, name: string, options: DrainOptions): Promise<void> {
  const host = platformHost(context, options);
  const id = await nodeIdOf(host, name);
  const body = options.timeout === undefined ? {} : { timeoutSeconds: options.timeout };
  const call = { method: "POST", path: `${nodePath(id)}:drain`, body } as const;
  await askAndWatch(context, { host, id, call, until: ({ status }) => status === "drained" }, options);
}

async function resumeNode(context: Context, name: string, options: WaitOptions): Promise<void> {
  const host = platformHost(context, options);
  const id = await nodeIdOf(host, name);
  const call = { method: "POST", path: `${nodePath(id)}:resume`, body: {} } as const;
  await askAndWatch(context, { host, id, call, until: ({ status }) => status === "active" }, options);
}

async function restartNode(context: Context, name: string, options: WaitOptions): Promise<void> {
  const host = platformHost(context, options);
  const id = await nodeIdOf(host, name);
  const idempotencyKey = context.ids.next("request");
  const call = { method: "POST", path: `${nodePath(id)}:restart-workload`, body: {}, idempotencyKey } as const;
  await askAndWatch(context, { host, id, call, until: isUpToDate }, options);
}

interface Asking {
  readonly host: Platform;
  readonly id: string;
  readonly call: Call;
  readonly until: (node: Node) => boolean;
}

async function askAndWatch(context: Context, { host, id, call, until }: Asking, options: WaitOptions): Promise<void> {
  const after = await newestEvent(host, nodePath(id));
  const asked = await callJson(host, call, nodeSchema);
  const node = waits(context.terminal, options) ? await watchNode(context, host, { id, after, until }) : asked;
  print(context.terminal, node, { json: options.json, text: nodeText });
}
