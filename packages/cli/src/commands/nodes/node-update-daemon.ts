import { type Node, nodeSchema } from "@fairlead/protocol/resources";
import { type Command, InvalidArgumentError } from "commander";
import { CliError, UsageError } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import { isDuration, parseDuration } from "../../input/duration.ts";
import { isReachable, type RolledNode, requireAllBack, rollDaemons } from "../../nodes/daemon-roll.ts";
import { nodeIdOf, nodePath } from "../../nodes/node-reference.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  type PlatformConnection,
  platformHost,
} from "../../platform/client-options.ts";
import { callJson } from "../../platform/http-client.ts";
import { listAll, parseLimit } from "../../terminal/list-all.ts";
import { print } from "../../terminal/output.ts";
import { formatTable } from "../../terminal/table.ts";
import { visible } from "../../terminal/visible.ts";

interface UpdateDaemonOptions extends ClientOptions {
  readonly to: string;
  readonly all?: boolean;
  readonly batch: number;
  readonly timeout: number;
}

const TIMEOUT_SECONDS = 15 * 60;

/** `fairlead node update-daemon`. */
export function addNodeUpdateDaemonCommand(node: Command, context: CommandContext): void {
  addProjectOption(addPlatformOptions(node.command("update-daemon")))
    .description(
      "update the daemons of nodes in batches; engines keep running. Stops at the first node that does not come back",
    )
    .argument("[node...]", "node IDs, or identifiers in the project")
    .requiredOption("--to <version>", "a daemon version that the platform offers")
    .option("--all", "all nodes of the project")
    .option("--batch <number>", "number of nodes to update at a time", parseLimit, 1)
    .option("--timeout <duration>", "time limit per node: 90s, 30m (default: 15m)", toSeconds, TIMEOUT_SECONDS)
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead node update-daemon local --to 1.3.0\n" +
        "  fairlead node update-daemon --all --to 1.3.0 --batch 5\n\n" +
        "Ctrl-C stops the rollout; nodes that already started to update continue. Run the same command again to resume.",
    )
    .action((names: string[], options: UpdateDaemonOptions) => updateDaemons(context, names, options));
}

function toSeconds(text: string): number {
  if (!isDuration(text)) throw new InvalidArgumentError("Must be a duration such as 90s, 30m or 2h.");
  return parseDuration(text);
}

async function updateDaemons(
  context: CommandContext,
  names: readonly string[],
  options: UpdateDaemonOptions,
): Promise<void> {
  if (names.length > 0 === (options.all === true)) throw new UsageError("name the nodes or use --all");
  const host = platformHost(context, options);
  const nodes = options.all ? await allReachable(context, host) : await named(host, names);
  const { to: version, batch } = options;
  const roll = { version, batch, timeoutMs: options.timeout * 1000 };
  const rolled = await rollDaemons(context, host, { nodes, roll });
  print(
    context.terminal,
    { version, nodes: rolled },
    { json: options.json, text: (answer) => rollTable(answer.nodes) },
  );
  requireAllBack(rolled, version);
}

async function allReachable({ terminal }: CommandContext, host: PlatformConnection): Promise<Node[]> {
  const query = { projectId: host.projectId() };
  const all = await listAll(host, { path: "/v1/nodes", field: "nodes", item: nodeSchema, query }, {});
  const away = all.filter((node) => !isReachable(node));
  for (const { identifier, status } of away) terminal.note(`skipping ${visible(identifier)}: it is ${status}`);
  return all.filter(isReachable);
}

async function named(host: PlatformConnection, names: readonly string[]): Promise<Node[]> {
  const ids = new Set<string>();
  for (const name of names) ids.add(await nodeIdOf(host, name));
  const nodes: Node[] = [];
  for (const id of ids) nodes.push(await callJson(host, { path: nodePath(id) }, nodeSchema));
  const away = nodes.find((node) => !isReachable(node));
  if (away !== undefined) {
    throw new CliError(
      `${visible(away.identifier)} is ${away.status}: its daemon cannot be reached. No node was updated.`,
    );
  }
  return nodes;
}

function rollTable(nodes: readonly RolledNode[]): string {
  if (nodes.length === 0) return "no nodes to update\n";
  const rows = nodes.map(({ identifier, from, daemonVersion, result }) => [identifier, from, daemonVersion, result]);
  return formatTable(["NODE", "FROM", "DAEMON", "RESULT"], rows);
}
