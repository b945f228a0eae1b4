import type { Command } from "commander";
import { z } from "zod";
import { addPlatformOptions, type ClientOptions, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import { print } from "../output.ts";
import { formatTable } from "../table.ts";

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

export function addSessionCommands(program: Command, context: Context): void {
  const session = program.command("session").description("sessions: where you are signed in");
  addPlatformOptions(session.command("list"))
    .description("list where you are signed in, the newest first")
    .addHelpText("after", "\nExample:\n  fairlead session list")
    .action((options: ClientOptions) => listSessions(context, options));
  addPlatformOptions(session.command("revoke"))
    .description("sign out somewhere else; it takes effect within a second")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead session revoke sis_01kc3b6q2v8r5x0m7n4t9w1yza")
    .action((id: string, options: ClientOptions) => revokeSession(context, id, options));
}

async function listSessions(context: Context, options: ClientOptions): Promise<void> {
  const answer = await callJson(platformHost(context, options), { path: "/v1/me/sessions" }, sessionsSchema);
  print(context.terminal, answer, { json: options.json, text: sessionTable });
}

async function revokeSession(context: Context, id: string, options: ClientOptions): Promise<void> {
  const path = `/v1/me/sessions/${encodeURIComponent(id)}`;
  const answer = await callJson(platformHost(context, options), { method: "DELETE", path }, z.object({}));
  print(context.terminal, answer, { json: options.json, text: () => `ended ${id}\n` });
}

function sessionTable({ sessions }: Sessions): string {
  const rows = sessions.map(({ id, current, createdAt, expiresAt, address, userAgent }) => [
    id,
    current ? "this one" : "",
    createdAt,
    expiresAt,
    address,
    userAgent,
  ]);
  return formatTable(["ID", "", "SINCE", "UNTIL", "ADDRESS", "PROGRAM"], rows);
}
