import { type Sweep, sweepSchema } from "@fairlead/protocol/machines";
import type { Command } from "commander";
import { UsageError } from "../cli-error.ts";
import { addPlatformOptions, addProjectOption, type ClientOptions, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import {
  orTokenAdvice,
  PROVIDER_TOKEN_OPTION,
  type ProviderTokenOptions,
  readProviderToken,
} from "../nodes/provider-token-input.ts";
import { print } from "../output.ts";
import { formatTable } from "../table.ts";
import { visible } from "../visible.ts";

interface SweepOptions extends ClientOptions, ProviderTokenOptions {
  readonly delete?: boolean;
  readonly provider?: string;
}

/** `fairlead node sweep`. */
export function addNodeSweepCommand(node: Command, context: Context): void {
  addProjectOption(addPlatformOptions(node.command("sweep")))
    .description("find rented machines that no node has, and nodes whose machine is not there any more")
    .option("--delete", "remove the machines that no node has")
    .option(
      "--provider <name>",
      "look there besides, with a token of yours: when no node is left whose token could be used",
    )
    .option(...PROVIDER_TOKEN_OPTION)
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead node sweep\n  fairlead node sweep --delete\n" +
        "  fairlead node sweep --provider hetzner --provider-token-file token",
    )
    .action((options: SweepOptions) => sweep(context, options));
}

async function sweep(context: Context, options: SweepOptions): Promise<void> {
  const host = platformHost(context, options);
  const { provider } = options;
  if (provider === undefined && options.providerTokenFile !== undefined) {
    throw new UsageError("say which provider is to be asked with that token: --provider NAME");
  }
  const providerToken = provider === undefined ? undefined : await readProviderToken(context, options);
  const body = {
    projectId: host.projectId(),
    delete: options.delete ?? false,
    ...(provider === undefined ? {} : { provider }),
    ...(providerToken === undefined ? {} : { providerToken }),
  };
  const call = { method: "POST", path: "/v1/nodes:sweep", body } as const;
  const found = await orTokenAdvice({ ...options, token: providerToken }, callJson(host, call, sweepSchema));
  print(context.terminal, found, { json: options.json, text: sweepText });
  for (const { provider: name, machineId, message } of found.orphans) {
    if (message !== "") context.terminal.note(visible(`${name} did not remove ${machineId}: ${message}`));
  }
  for (const { provider: name, message } of found.unseen)
    context.terminal.note(visible(`not looked at ${name}: ${message}`));
}

function sweepText({ orphans, missing, unseen }: Sweep): string {
  const rows = [
    ...orphans.map((orphan) => [
      orphan.deleted ? "removed" : "no node",
      orphan.provider,
      orphan.machineId,
      orphan.nodeId,
      [orphan.location, orphan.publicIp].filter(Boolean).join(" "),
      orphan.createdAt,
    ]),
    ...missing.map(({ provider, machineId, nodeId }) => ["no machine", provider, machineId, nodeId, "", ""]),
  ];
  if (rows.length > 0) return formatTable(["FOUND", "PROVIDER", "MACHINE", "NODE", "WHERE", "CREATED"], rows);
  return unseen.length === 0
    ? "nothing: every rented machine has its node, and every such node its machine\n"
    : "nothing\n";
}
