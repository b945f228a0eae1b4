import { Argument, type Command, Option } from "commander";
import { UsageError } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import { parseDuration } from "../../input/duration.ts";
import { CONFIG_OPTION, type LocalOptions, withOperations } from "../../platform/local-admin.ts";
import { print } from "../../terminal/output.ts";
import { visible } from "../../terminal/visible.ts";

type LogLevel = Parameters<Parameters<Parameters<typeof withOperations>[2]>[0]["setLogLevel"]>[0]["level"];

const LEVELS: readonly LogLevel[] = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

interface ForgetOptions extends LocalOptions {
  readonly yes?: boolean;
}
interface LevelOptions extends LocalOptions {
  readonly for?: number;
}

/** Commands for the whole installation: master key and log level. */
export function addAdminOperations(admin: Command, context: CommandContext): void {
  local(admin.command("rotate-master-key"))
    .description(
      "re-encrypt all secrets with a new master key; the server must be stopped. The old key is kept next to the new one",
    )
    .addHelpText("after", "\nExample:\n  fairlead admin rotate-master-key --config /etc/fairlead/config.yaml")
    .action((options: LocalOptions) => rotateMasterKey(context, options));
  local(admin.command("forget-sealed"))
    .description("after the master key is lost: discard the secrets encrypted with it and create a new key")
    .option("--yes", "confirm; without it, the command only prints the consequences")
    .addHelpText("after", "\nExample:\n  fairlead admin forget-sealed --yes --config /etc/fairlead/config.yaml")
    .action((options: ForgetOptions) => forgetSealed(context, options));
  local(admin.command("log-level"))
    .description("change the log level of the running server, until it restarts or for a limited time")
    .addArgument(new Argument("<level>", "minimum level to log").choices(LEVELS))
    .addOption(
      new Option("--for <duration>", "restore the configured level after this time: 10m, 2h or seconds").argParser(
        parseDuration,
      ),
    )
    .addHelpText("after", "\nExample:\n  fairlead admin log-level debug --for 10m")
    .action((level: LogLevel, options: LevelOptions) => setLogLevel(context, level, options));
}

function local(command: Command): Command {
  return command.option(...CONFIG_OPTION).option("--json", "print JSON");
}

async function rotateMasterKey(context: CommandContext, options: LocalOptions): Promise<void> {
  const report = await withOperations(context, options, (operations) => operations.rotateMasterKey());
  print(context.terminal, report, {
    json: options.json,
    text: ({ keyId, formerKeyId, resealed }) =>
      [
        ...Object.entries(resealed).map(([place, count]) => `${place}: ${count} re-encrypted`),
        `the master key is now ${keyId}; the old key, ${formerKeyId}, is kept next to it`,
        "Older backups need the old key: keep it as long as you keep them. Users must sign in again in their browsers.",
        "",
      ].join("\n"),
  });
}

async function forgetSealed(context: CommandContext, options: ForgetOptions): Promise<void> {
  if (!options.yes) {
    throw new UsageError(
      "All provider credentials and all node and agent secrets encrypted with the lost master key are discarded and must be set " +
        "again. Projects, keys, balances, chats and nodes are kept. To continue, add --yes.",
    );
  }
  const gone = await withOperations(context, options, (operations) => operations.forgetSealed());
  print(context.terminal, gone, {
    json: options.json,
    text: ({ providers, secrets }) =>
      [
        ...providers.map(
          ({ projectId, name }) => `set the credential of provider ${visible(name)} in ${projectId} again`,
        ),
        ...secrets.map(({ ownerId, name }) => `set the secret ${visible(name)} of ${ownerId} again`),
        "a new master key was created; keep a copy of it elsewhere",
        "",
      ].join("\n"),
  });
}

async function setLogLevel(context: CommandContext, level: LogLevel, options: LevelOptions): Promise<void> {
  const answer = await withOperations(context, options, (operations) =>
    operations.setLogLevel({ level, seconds: options.for ?? null }),
  );
  print(context.terminal, answer, {
    json: options.json,
    text: ({ configured, until }) =>
      `the log level is ${level} ${until === null ? "until the next restart" : `until ${until}`}, then ${configured}\n`,
  });
}
