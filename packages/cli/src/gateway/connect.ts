import { type WorkloadConnect, workloadConnectSchema } from "@fairlead/protocol/workload-connect";
import { type Command, InvalidArgumentError } from "commander";
import type { ClientOptions, Platform } from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import { print } from "../output.ts";
import { openLocalGateway } from "./local-gateway.ts";
import { RenewedWay } from "./renewed-way.ts";

/** Reaching a workload from here: its address and a token, or a local port that leads to it. */

export interface ConnectOptions extends ClientOptions {
  readonly port?: number;
}

export interface Connection {
  readonly host: Platform;
  /** Where the way to it is asked for. */
  readonly path: string;
  /** For people: "the engine of attic". */
  readonly what: string;
}

export function addPortOption(command: Command, what: string): Command {
  return command.option(
    "--port <number>",
    `forward this port of localhost to the ${what} until Ctrl-C; 0: any free one`,
    toPort,
  );
}

function toPort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError("must be a number from 0 to 65535");
  return port;
}

export async function connectTo(
  context: Context,
  { host, path, what }: Connection,
  options: ConnectOptions,
): Promise<void> {
  const ask = (): Promise<WorkloadConnect> => callJson(host, { path }, workloadConnectSchema);
  if (options.port !== undefined) {
    await forwardPort(context, { what, port: options.port, json: options.json, ask });
    return;
  }
  const text = ({ gatewayUrl, authToken }: WorkloadConnect): string => `${gatewayUrl}\n${authToken}\n`;
  print(context.terminal, await ask(), { json: options.json, text });
  if (!options.json)
    context.terminal.note("the second line is the Bearer token for the first; it holds for 15 minutes");
}

interface Forwarding {
  readonly what: string;
  readonly port: number;
  readonly json: boolean | undefined;
  readonly ask: () => Promise<WorkloadConnect>;
}

async function forwardPort({ terminal, clock }: Context, { what, port, json, ask }: Forwarding): Promise<void> {
  const way = new RenewedWay({ ask, clock });
  // Whoever may not reach it learns it now, and not by the first request.
  await way.current();
  const gateway = await openLocalGateway({ port, way });
  const stopped = Promise.withResolvers<void>();
  const release = terminal.onInterrupt(() => stopped.resolve());
  try {
    const url = `http://localhost:${gateway.port}`;
    print(terminal, { url }, { json, text: () => `${url}\n` });
    terminal.note(`leads to ${what} until Ctrl-C`);
    await stopped.promise;
  } finally {
    release();
    gateway.close();
  }
}
