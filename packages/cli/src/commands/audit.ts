import { type AuditEvent, auditEventSchema } from "@fairlead/protocol/resources";
import type { Command } from "commander";
import { addPlatformOptions, addProjectOption, type ClientOptions, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { addLimitOption, type ListOptions, listAll } from "../list-all.ts";
import { readMoment } from "../moment.ts";
import { print } from "../output.ts";
import { formatTable } from "../table.ts";

interface AuditOptions extends ClientOptions, ListOptions {
  readonly action?: string;
  readonly actor?: string;
  readonly from?: string;
  readonly to?: string;
  readonly platform?: boolean;
}

/** A log has no natural end that somebody waits for. */
const NEWEST = 100;

export function addAuditCommand(program: Command, context: Context): void {
  addLimitOption(addProjectOption(addPlatformOptions(program.command("audit"))), NEWEST)
    .description("show who did what in a project, the newest first")
    .option("--action <name>", "this action alone, such as key.create")
    .option("--actor <id>", "what this user or node did alone")
    .option("--from <time>", "from this time on: 7d (ago), 2026-12-31 or 2026-12-31T18:00:00Z")
    .option("--to <time>", "before this time")
    .option("--platform", "of every project and of none; for platform administrators")
    .addHelpText("after", "\nExamples:\n  fairlead audit --from 7d\n  fairlead audit --action key.create --json")
    .action((options: AuditOptions) => showAudit(context, options));
}

async function showAudit(context: Context, options: AuditOptions): Promise<void> {
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
  if (events.length === 0) return "nothing was recorded that fits\n";
  const rows = events.map(({ at, action, actor, resource, address }) => [
    at,
    action,
    actor.email ?? actor.id,
    [resource.name, resource.id].filter(Boolean).join(" "),
    address,
  ]);
  return formatTable(["TIME", "ACTION", "WHO", "WHAT", "FROM"], rows);
}
