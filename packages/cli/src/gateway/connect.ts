import { type WorkloadConnect, workloadConnectSchema } from "@fairlead/protocol/workload-connect";
import { type Command, InvalidArgumentError } from "commander";
import type { CommandContext } from "../context.ts";
import type { ClientOptions, PlatformConnection } from "../platform/client-options.ts";
import { callJson } from "../platform/http-client.ts";
import { proxiesOf } from "../platform/outgoing.ts";
import { print } from "../terminal/output.ts";
import { openLocalGateway } from "./local-gateway.ts";
import { RenewedWay } from "./renewed-way.ts";

/** Connects to a workload: prints its URL and a token, or forwards a local port. */

export interface GatewayConnectOptions extends ClientOptions {
  readonly port?: number;
}

export interface Connection {
  readonly host: PlatformConnection;
  /** API path of the connect route. */
  readonly path: string;
  /** For messages: "the engine of local". */
  readonly what: string;
}

export function addPortOption(command: Command, what: string): Command {
  return command.option(
    "--port <number>",
    `forward this local port to the ${what} until Ctrl-C; 0: any free port`,
    toPort,
  );
}

function toPort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError("Must be a number from 0 to 65535.");
  return port;
}

export async function connectTo(
  context: CommandContext,
  { host, path, what }: Connection,
  options: GatewayConnectOptions,
): Promise<void> {
  const ask = (): Promise<WorkloadConnect> => callJson(host, { path }, workloadConnectSchema);
  if (options.port !== undefined) {
    await forwardPort(context, { what, port: options.port, json: options.json, ask });
    return;
  }
  const text = ({ gatewayUrl, authToken }: WorkloadConnect): string => `${gatewayUrl}\n${authToken}\n`;
  print(context.terminal, await ask(), { json: options.json, text });
  if (!options.json) context.terminal.note("line 1 is the URL, line 2 its bearer token, valid for 15 minutes");
}

interface Forwarding {
  readonly what: string;
  readonly port: number;
  readonly json: boolean | undefined;
  readonly ask: () => Promise<WorkloadConnect>;
}

async function forwardPort(
  { terminal, clock, env }: CommandContext,
  { what, port, json, ask }: Forwarding,
): Promise<void> {
  const way = new RenewedWay({ ask, clock });
  // Fail now, not on the first request, if access is denied.
  await way.current();
  const gateway = await openLocalGateway({ port, way, proxies: proxiesOf(env) });
  const stopped = Promise.withResolvers<void>();
  const release = terminal.onInterrupt(() => stopped.resolve());
  try {
    const url = `http://localhost:${gateway.port}`;
    print(terminal, { url }, { json, text: () => `${url}\n` });
    terminal.note(`forwarding to ${what} until Ctrl-C`);
    await stopped.promise;
  } finally {
    release();
    gateway.close();
  }
}
