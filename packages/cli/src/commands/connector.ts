import { type Connector, connectorSchema } from "@fairlead/protocol/agents";
import type { Command } from "commander";
import { z } from "zod";
import { addPlatformOptions, addProjectOption, type ClientOptions, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import { print } from "../output.ts";
import { formatTable } from "../table.ts";

const catalogueSchema = z.object({ connectors: z.array(connectorSchema) });

/** `fairlead connector list`. */
export function addConnectorCommands(program: Command, context: Context): void {
  const connector = program.command("connector").description("connectors: what agents can be joined to");
  addProjectOption(addPlatformOptions(connector.command("list")))
    .description("list the connectors that agents can have, and the secrets that each needs")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead connector list\n  fairlead connector list --json | jq '.connectors[].secrets'",
    )
    .action((options: ClientOptions) => listConnectors(context, options));
}

async function listConnectors(context: Context, options: ClientOptions): Promise<void> {
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
  return formatTable(["SLUG", "SECRETS", "WHAT IT IS"], rows);
}

function secretText({ name, as, variable }: Connector["secrets"][number]): string {
  return `${name} (${as}${variable === undefined ? "" : ` ${variable}`})`;
}
