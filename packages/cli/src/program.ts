import { versionLine } from "@fairlead/protocol/build-info";
import { DomainError } from "@fairlead/protocol/errors";
import { Command, CommanderError } from "commander";
import { CliError } from "./cli-error.ts";
import { addAdminCommands } from "./commands/admin.ts";
import { addAgentCommands } from "./commands/agent.ts";
import { addAliasCommands } from "./commands/alias.ts";
import { addAuditCommand } from "./commands/audit.ts";
import { addBackupCommands } from "./commands/backup.ts";
import { addChatCommand } from "./commands/chat.ts";
import { addChatSessionCommands } from "./commands/chat-session.ts";
import { addConnectorCommands } from "./commands/connector.ts";
import { addCreditsCommands } from "./commands/credits.ts";
import { addDoctorCommand } from "./commands/doctor.ts";
import { addKeyCommands } from "./commands/key.ts";
import { addMemberCommands } from "./commands/member.ts";
import { addModelsCommand } from "./commands/models.ts";
import { addNodeCommands } from "./commands/node.ts";
import { addPlansCommand } from "./commands/plans.ts";
import { addProjectCommands } from "./commands/project.ts";
import { addProviderCommands } from "./commands/provider.ts";
import { addServerCommand } from "./commands/server.ts";
import { addSessionCommands } from "./commands/session.ts";
import { addSignInCommands } from "./commands/sign-in.ts";
import { addUsageCommand } from "./commands/usage.ts";
import type { Context } from "./context.ts";
import type { Terminal } from "./terminal.ts";

/** Runs one command line. @returns the process's exit code: 0, 1 for a failure, 2 for bad usage, 130 for Ctrl-C. */
export async function runProgram(context: Context, argv: readonly string[]): Promise<number> {
  try {
    await buildProgram(context).parseAsync(argv, { from: "user" });
    return 0;
  } catch (error) {
    return report(context.terminal, error);
  }
}

/** All commands. */
export function buildProgram(context: Context): Command {
  const program = new Command("fairlead")
    .description("Run your own AI platform: projects, keys, chat and an inference host over your own machines.")
    .version(versionLine(context))
    .showHelpAfterError("(add --help for the options and examples)")
    .exitOverride()
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
  // Commander has printed its own errors, and help, by now.
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
