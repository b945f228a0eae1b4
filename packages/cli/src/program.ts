import { DomainError } from "@fairlead/protocol/errors";
import { versionLine } from "@fairlead/protocol/values/build-info";
import { Command, CommanderError } from "commander";
import { CliError } from "./cli-error.ts";
import { addAgentCommands } from "./commands/agents/agent.ts";
import { addAliasCommands } from "./commands/models/alias.ts";
import { addChatCommand } from "./commands/models/chat.ts";
import { addChatSessionCommands } from "./commands/models/chat-session.ts";
import { addConnectorCommands } from "./commands/models/connector.ts";
import { addModelsCommand } from "./commands/models/models.ts";
import { addProviderCommands } from "./commands/models/provider.ts";
import { addSessionCommands } from "./commands/models/session.ts";
import { addNodeCommands } from "./commands/nodes/node.ts";
import { addPlansCommand } from "./commands/nodes/plans.ts";
import { addAuditCommand } from "./commands/projects/audit.ts";
import { addCreditsCommands } from "./commands/projects/credits.ts";
import { addKeyCommands } from "./commands/projects/key.ts";
import { addMemberCommands } from "./commands/projects/member.ts";
import { addProjectCommands } from "./commands/projects/project.ts";
import { addUsageCommand } from "./commands/projects/usage.ts";
import { addAdminCommands } from "./commands/server/admin.ts";
import { addBackupCommands } from "./commands/server/backup.ts";
import { addDoctorCommand } from "./commands/server/doctor.ts";
import { addServerCommand } from "./commands/server/server.ts";
import { addSignInCommands } from "./commands/server/sign-in.ts";
import type { CommandContext } from "./context.ts";
import { prepareOutgoing } from "./platform/outgoing.ts";
import type { Terminal } from "./terminal/terminal.ts";

/** Runs one command line. @returns the exit code: 0, 1 failure, 2 invalid command line, 130 Ctrl-C. */
export async function runProgram(context: CommandContext, argv: readonly string[]): Promise<number> {
  try {
    await buildProgram(context).parseAsync(argv, { from: "user" });
    return 0;
  } catch (error) {
    return report(context.terminal, error);
  }
}

/** All commands. */
export function buildProgram(context: CommandContext): Command {
  const program = new Command("fairlead")
    .description("Self-hosted AI platform: projects, keys, chat and an inference API on your own machines.")
    .version(versionLine(context))
    .showHelpAfterError("(run with --help for options and examples)")
    .exitOverride()
    .hook("preAction", () => prepareOutgoing(context.env))
    .configureOutput({
      writeOut: (text) => context.terminal.out(text),
      writeErr: (text) => context.terminal.note(text.trimEnd()),
    });
  addSignInCommands(program, context);
  addSessionCommands(program, context);
  addProjectCommands(program, context);
  addMemberCommands(program, context);
  addKeyCommands(program, context);
  addProviderCommands(program, context);
  addAliasCommands(program, context);
  addNodeCommands(program, context);
  addPlansCommand(program, context);
  addAgentCommands(program, context);
  addConnectorCommands(program, context);
  addModelsCommand(program, context);
  addChatCommand(program, context);
  addChatSessionCommands(program, context);
  addAuditCommand(program, context);
  addUsageCommand(program, context);
  addCreditsCommands(program, context);
  addServerCommand(program, context);
  addAdminCommands(program, context);
  addBackupCommands(program, context);
  addDoctorCommand(program, context);
  return program;
}

function report(terminal: Terminal, error: unknown): number {
  // Commander has already printed its errors and help.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof DomainError) {
    terminal.note(`fairlead: ${error.message} (${error.code})`);
    return 1;
  }
  if (error instanceof CliError) {
    if (error.message) terminal.note(`fairlead: ${error.message}`);
    return error.exitCode;
  }
  terminal.note(`fairlead: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  return 1;
}
