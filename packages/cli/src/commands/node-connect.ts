import type { Command } from "commander";
import { addPlatformOptions, addProjectOption, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { addPortOption, type ConnectOptions, connectTo } from "../gateway/connect.ts";
import { NODE_ARGUMENT, nodeIdOf, nodePath } from "../nodes/node-reference.ts";

/** `fairlead node connect NODE`. */
export function addNodeConnectCommand(node: Command, context: Context): void {
  addPortOption(addProjectOption(addPlatformOptions(node.command("connect"))), "engine")
    .description("reach a node's engine: print its address and a token for 15 minutes, or forward a local port to it")
    .argument(...NODE_ARGUMENT)
    .addHelpText("after", HELP)
    .action((name: string, options: ConnectOptions) => connect(context, name, options));
}

const HELP = `
What goes through is not metered, and only the asking is in the audit log. For owners and administrators of the project.

Examples:
  fairlead node connect attic --port 9000      # then: curl localhost:9000/v1/models
  fairlead node connect attic --json | jq -r .authToken`;

async function connect(context: Context, name: string, options: ConnectOptions): Promise<void> {
  const host = platformHost(context, options);
  const path = `${nodePath(await nodeIdOf(host, name))}/workload-connect`;
  await connectTo(context, { host, path, what: `the engine of ${name}` }, options);
}
