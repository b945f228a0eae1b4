import { type AuditEvent, auditEventSchema } from "@fairlead/protocol/resources";
import type { Command } from "commander";
import type { CommandContext } from "../../context.ts";
import { readMoment } from "../../input/moment.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  platformHost,
} from "../../platform/client-options.ts";
import { addLimitOption, type ListOptions, listAll } from "../../terminal/list-all.ts";
import { print } from "../../terminal/output.ts";
import { formatTable } from "../../terminal/table.ts";

interface AuditOptions extends ClientOptions, ListOptions {
  readonly action?: string;
  readonly actor?: string;
  readonly from?: string;
  readonly to?: string;
  readonly platform?: boolean;
}

/** The log can be arbitrarily long. */
const NEWEST = 100;

export function addAuditCommand(program: Command, context: CommandContext): void {
  addLimitOption(addProjectOption(addPlatformOptions(program.command("audit"))), NEWEST)
    .description("show a project's audit log, newest first")
    .option("--action <name>", "only this action, such as key.create")
    .option("--actor <id>", "only actions of this user or node")
    .option("--from <time>", "start time: 7d (ago), 2026-12-31 or 2026-12-31T18:00:00Z")
    .option("--to <time>", "end time (exclusive); a date includes the whole day")
    .option("--platform", "events of all projects and of the platform; requires a platform administrator")
    .addHelpText("after", "\nExamples:\n  fairlead audit --from 7d\n  fairlead audit --action key.create --json")
    .action((options: AuditOptions) => showAudit(context, options));
}

async function showAudit(context: CommandContext, options: AuditOptions): Promise<void> {
  const host = platformHost(context, options);
  const now = context.clock.now();
  const { action, actor, from, to, platform } = options;
  const query = {
    action,
    actorId: actor,
    from: from && readMoment(from, { now, durations: "ago", days: "begin" }),
    to: to && readMoment(to, { now, durations: "ago", days: "end" }),
  };
  const path = platform ? "/v1/audit" : `${host.projectPath()}/audit`;
  const auditEvents = await listAll(host, { path, field: "auditEvents", item: auditEventSchema, query }, options);
  print(context.terminal, { auditEvents }, { json: options.json, text: (answer) => auditTable(answer.auditEvents) });
}

function auditTable(events: readonly AuditEvent[]): string {
  if (events.length === 0) return "no matching events\n";
  const rows = events.map(({ at, action, actor, resource, address }) => [
    at,
    action,
    actor.email ?? actor.id,
    [resource.name, resource.id].filter(Boolean).join(" "),
    address,
  ]);
  return formatTable(["TIME", "ACTION", "WHO", "WHAT", "FROM"], rows);
}
