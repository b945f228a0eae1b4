import { type Sweep, sweepSchema } from "@fairlead/protocol/machines";
import type { Command } from "commander";
import { UsageError } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import {
  orTokenAdvice,
  PROVIDER_TOKEN_OPTION,
  type ProviderTokenOptions,
  readProviderToken,
} from "../../nodes/provider-token-input.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  platformHost,
} from "../../platform/client-options.ts";
import { callJson } from "../../platform/http-client.ts";
import { print } from "../../terminal/output.ts";
import { formatTable } from "../../terminal/table.ts";
import { visible } from "../../terminal/visible.ts";

interface SweepOptions extends ClientOptions, ProviderTokenOptions {
  readonly delete?: boolean;
  readonly provider?: string;
}

/** `fairlead node sweep`. */
export function addNodeSweepCommand(node: Command, context: CommandContext): void {
  addProjectOption(addPlatformOptions(node.command("sweep")))
    .description("find rented machines without a node, and nodes whose machine no longer exists")
    .option("--delete", "delete the machines without a node")
    .option(
      "--provider <name>",
      "also check this provider, with your own token; for when no node with a usable token is left",
    )
    .option(...PROVIDER_TOKEN_OPTION)
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead node sweep\n  fairlead node sweep --delete\n" +
        "  fairlead node sweep --provider hetzner --provider-token-file token",
    )
    .action((options: SweepOptions) => sweep(context, options));
}

async function sweep(context: CommandContext, options: SweepOptions): Promise<void> {
  const host = platformHost(context, options);
  const { provider } = options;
  if (provider === undefined && options.providerTokenFile !== undefined) {
    throw new UsageError("--provider-token-file requires --provider NAME");
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
    if (message !== "") context.terminal.note(visible(`${name} did not delete ${machineId}: ${message}`));
  }
  for (const { provider: name, message } of found.unseen)
    context.terminal.note(visible(`did not check ${name}: ${message}`));
}

function sweepText({ orphans, missing, unseen }: Sweep): string {
  const rows = [
    ...orphans.map((orphan) => [
      orphan.deleted ? "deleted" : "no node",
      orphan.provider,
      orphan.machineId,
      orphan.nodeId,
      [orphan.location, orphan.publicIp].filter(Boolean).join(" "),
      orphan.createdAt,
    ]),
    ...missing.map(({ provider, machineId, nodeId }) => ["no machine", provider, machineId, nodeId, "", ""]),
  ];
  if (rows.length > 0) return formatTable(["FOUND", "PROVIDER", "MACHINE", "NODE", "LOCATION", "CREATED"], rows);
  return unseen.length === 0
    ? "nothing found: every rented machine has a node and every rented node has a machine\n"
    : "nothing found\n";
}
