import { type WorkloadConnect, workloadConnectSchema } from "@fairlead/protocol/workload-connect";
import { type Command, InvalidArgumentError } from "commander";
import { addPlatformOptions, addProjectOption, type ClientOptions, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { openLocalGateway } from "../gateway/local-gateway.ts";
import { RenewedWay } from "../gateway/renewed-way.ts";
import { callJson } from "../http-client.ts";
import { NODE_ARGUMENT, nodeIdOf } from "../nodes/node-reference.ts";
import { print } from "../output.ts";

interface ConnectOptions extends ClientOptions {
  readonly port?: number;
}

/** `fairlead node connect NODE`. */
export function addNodeConnectCommand(node: Command, context: Context): void {
  addProjectOption(addPlatformOptions(node.command("connect")))
    .description("reach a node's engine: print its address and a token for 15 minutes, or forward a local port to it")
    .argument(...NODE_ARGUMENT)
    .option("--port <number>", "forward this port of localhost to the engine until Ctrl-C; 0: any free one", toPort)
    .addHelpText("after", HELP)
    .action((name: string, options: ConnectOptions) => connect(context, name, options));
}

const HELP = `
What goes through is not metered, and only the asking is in the audit log. For owners and administrators of the project.

Examples:
  fairlead node connect attic --port 9000      # then: curl localhost:9000/v1/models
  fairlead node connect attic --json | jq -r .authToken`;

function toPort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError("must be a number from 0 to 65535");
  return port;
}

async function connect(context: Context, name: string, options: ConnectOptions): Promise<void> {
  const host = platformHost(context, options);
  const id = await nodeIdOf(host, name);
  const path = `/v1/nodes/${encodeURIComponent(id)}/workload-connect`;
  const ask = (): Promise<WorkloadConnect> => callJson(host, { path }, workloadConnectSchema);
  if (options.port !== undefined) {
    await forwardPort(context, { name, port: options.port, json: options.json, ask });
    return;
  }
  const text = ({ gatewayUrl, authToken }: WorkloadConnect): string => `${gatewayUrl}\n${authToken}\n`;
  print(context.terminal, await ask(), { json: options.json, text });
  if (!options.json)
    context.terminal.note("the second line is the Bearer token for the first; it holds for 15 minutes");
}

interface Forwarding {
  readonly name: string;
  readonly port: number;
  readonly json: boolean | undefined;
  readonly ask: () => Promise<WorkloadConnect>;
}

async function forwardPort({ terminal, clock }: Context, { name, port, json, ask }: Forwarding): Promise<void> {
  const way = new RenewedWay({ ask, clock });
  // Whoever may not reach the node learns it now, and not by the first request.
  await way.current();
  const gateway = await openLocalGateway({ port, way });
  const stopped = Promise.withResolvers<void>();
  const release = terminal.onInterrupt(() => stopped.resolve());
  try {
    const url = `http://localhost:${gateway.port}`;
    print(terminal, { url }, { json, text: () => `${url}\n` });
    terminal.note(`leads to the engine of ${name} until Ctrl-C`);
    await stopped.promise;
  } finally {
    release();
    gateway.close();
  }
}
