import type { Command } from "commander";
import type { CommandContext } from "../../context.ts";
import { addPortOption, connectTo, type GatewayConnectOptions } from "../../gateway/connect.ts";
import { NODE_ARGUMENT, nodeIdOf, nodePath } from "../../nodes/node-reference.ts";
import { addPlatformOptions, addProjectOption, platformHost } from "../../platform/client-options.ts";

/** `fairlead node connect NODE`. */
export function addNodeConnectCommand(node: Command, context: CommandContext): void {
  addPortOption(addProjectOption(addPlatformOptions(node.command("connect"))), "engine")
    .description(
      "connect to a node's engine: print its URL and a token valid for 15 minutes, or forward a local port to it",
    )
    .argument(...NODE_ARGUMENT)
    .addHelpText("after", HELP)
    .action((name: string, options: GatewayConnectOptions) => connect(context, name, options));
}

const HELP = `
Traffic is not metered; the audit log records only the connect request. Requires the owner or admin role.

Examples:
  fairlead node connect local --port 9000      # then: curl localhost:9000/v1/models
  fairlead node connect local --json | jq -r .authToken`;

async function connect(context: CommandContext, name: string, options: GatewayConnectOptions): Promise<void> {
  const host = platformHost(context, options);
  const path = `${nodePath(await nodeIdOf(host, name))}/workload-connect`;
  await connectTo(context, { host, path, what: `the engine of ${name}` }, options);
}
