import { type Connector, connectorSchema } from "@fairlead/protocol/agents";
import type { Command } from "commander";
import { z } from "zod";
import type { CommandContext } from "../../context.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  platformHost,
} from "../../platform/client-options.ts";
import { callJson } from "../../platform/http-client.ts";
import { print } from "../../terminal/output.ts";
import { formatTable } from "../../terminal/table.ts";

const catalogueSchema = z.object({ connectors: z.array(connectorSchema) });

/** `fairlead connector list`. */
export function addConnectorCommands(program: Command, context: CommandContext): void {
  const connector = program.command("connector").description("connectors: services that agents can connect to");
  addProjectOption(addPlatformOptions(connector.command("list")))
    .description("list the available connectors and the secrets each one requires")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead connector list\n  fairlead connector list --json | jq '.connectors[].secrets'",
    )
    .action((options: ClientOptions) => listConnectors(context, options));
}

async function listConnectors(context: CommandContext, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const query = new URLSearchParams({ projectId: host.projectId() });
  const answer = await callJson(host, { path: `/v1/connectors?${query.toString()}` }, catalogueSchema);
  print(context.terminal, answer, { json: options.json, text: ({ connectors }) => connectorTable(connectors) });
}

function connectorTable(connectors: readonly Connector[]): string {
  const rows = connectors.map(({ slug, description, secrets }) => [
    slug,
    secrets.map(secretText).join(", "),
    description,
  ]);
  return formatTable(["SLUG", "SECRETS", "DESCRIPTION"], rows);
}

function secretText({ name, as, variable }: Connector["secrets"][number]): string {
  return `${name} (${as}${variable === undefined ? "" : ` ${variable}`})`;
}
