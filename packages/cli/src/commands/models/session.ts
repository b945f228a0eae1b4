import type { Command } from "commander";
import { z } from "zod";
import type { CommandContext } from "../../context.ts";
import { addPlatformOptions, type ClientOptions, platformHost } from "../../platform/client-options.ts";
import { callJson } from "../../platform/http-client.ts";
import { print } from "../../terminal/output.ts";
import { formatTable } from "../../terminal/table.ts";

const sessionsSchema = z.object({
  sessions: z.array(
    z.looseObject({
      id: z.string(),
      userAgent: z.string(),
      address: z.string(),
      createdAt: z.string(),
      expiresAt: z.string(),
      current: z.boolean(),
    }),
  ),
});
type Sessions = z.infer<typeof sessionsSchema>;

export function addSessionCommands(program: Command, context: CommandContext): void {
  const session = program.command("session").description("sign-in sessions");
  addPlatformOptions(session.command("list"))
    .description("list your sign-in sessions, newest first")
    .addHelpText("after", "\nExample:\n  fairlead session list")
    .action((options: ClientOptions) => listSessions(context, options));
  addPlatformOptions(session.command("revoke"))
    .description("revoke a session; takes effect within one second")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead session revoke sis_01kc3b6q2v8r5x0m7n4t9w1yza")
    .action((id: string, options: ClientOptions) => revokeSession(context, id, options));
}

async function listSessions(context: CommandContext, options: ClientOptions): Promise<void> {
  const answer = await callJson(platformHost(context, options), { path: "/v1/me/sessions" }, sessionsSchema);
  print(context.terminal, answer, { json: options.json, text: sessionTable });
}

async function revokeSession(context: CommandContext, id: string, options: ClientOptions): Promise<void> {
  const path = `/v1/me/sessions/${encodeURIComponent(id)}`;
  const answer = await callJson(platformHost(context, options), { method: "DELETE", path }, z.object({}));
  print(context.terminal, answer, { json: options.json, text: () => `revoked ${id}\n` });
}

function sessionTable({ sessions }: Sessions): string {
  const rows = sessions.map(({ id, current, createdAt, expiresAt, address, userAgent }) => [
    id,
    current ? "current" : "",
    createdAt,
    expiresAt,
    address,
    userAgent,
  ]);
  return formatTable(["ID", "", "CREATED", "EXPIRES", "ADDRESS", "USER AGENT"], rows);
}
