import { Argument, type Command, Option } from "commander";
import { UsageError } from "../cli-error.ts";
import type { Context } from "../context.ts";
import { parseDuration } from "../duration.ts";
import { type LocalOptions, withOperations } from "../local-admin.ts";
import { print } from "../output.ts";
import { visible } from "../visible.ts";

type LogLevel = Parameters<Parameters<Parameters<typeof withOperations>[2]>[0]["setLogLevel"]>[0]["level"];

const LEVELS: readonly LogLevel[] = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

interface ForgetOptions extends LocalOptions {
  readonly yes?: boolean;
}
interface LevelOptions extends LocalOptions {
  readonly for?: number;
}

/** What touches the installation as a whole: its master key, its log. */
export function addAdminOperations(admin: Command, context: Context): void {
  local(admin.command("rotate-master-key"))
    .description("seal all secrets by a new master key; the server must be stopped, and the former key is kept beside")
    .addHelpText("after", "\nExample:\n  fairlead admin rotate-master-key --config /etc/fairlead/config.yaml")
    .action((options: LocalOptions) => rotateMasterKey(context, options));
  local(admin.command("forget-sealed"))
    .description("after the master key was lost for good: give up the secrets that it sealed, and begin with a new one")
    .option("--yes", "do it; without this only what it means is said")
    .addHelpText("after", "\nExample:\n  fairlead admin forget-sealed --yes --config /etc/fairlead/config.yaml")
    .action((options: ForgetOptions) => forgetSealed(context, options));
  local(admin.command("log-level"))
    .description("change what the running server logs, until its next start or for a while")
    .addArgument(new Argument("<level>", "least level that is logged").choices(LEVELS))
    .addOption(new Option("--for <duration>", "then as before: 10m, 2h or seconds").argParser(parseDuration))
    .addHelpText("after", "\nExample:\n  fairlead admin log-level debug --for 10m")
    .action((level: LogLevel, options: LevelOptions) => setLogLevel(context, level, options));
}

function local(command: Command): Command {
  return command
    .option("--config <file>", "the server's configuration file; it names the data folder")
    .option("--json", "print the answer as JSON");
}

async function rotateMasterKey(context: Context, options: LocalOptions): Promise<void> {
  const report = await withOperations(context, options, (operations) => operations.rotateMasterKey());
  print(context.terminal, report, {
    json: options.json,
    text: ({ keyId, formerKeyId, resealed }) =>
      [
        ...Object.entries(resealed).map(([place, count]) => `${place}: ${count} sealed anew`),
        `the master key is ${keyId} from now on; the one before is beside it, named by ${formerKeyId}`,
        "backups of before need that one: keep it as long as you keep them. People sign in again in their browsers.",
        "",
      ].join("\n"),
  });
}

async function forgetSealed(context: Context, options: ForgetOptions): Promise<void> {
  if (!options.yes) {
    throw new UsageError(
      "Every credential of a provider and every secret of a node or an agent that the lost master key sealed is given up, and must be set " +
        "again. Projects, keys, money, chats and nodes stay. If that is what you want, add --yes.",
    );
  }
  const gone = await withOperations(context, options, (operations) => operations.forgetSealed());
  print(context.terminal, gone, {
    json: options.json,
    text: ({ providers, secrets }) =>
      [
        ...providers.map(
          ({ projectId, name }) => `set the credential of provider ${visible(name)} of ${projectId} again`,
        ),
        ...secrets.map(({ ownerId, name }) => `set the secret ${visible(name)} of ${ownerId} again`),
        "a new master key is in place; keep a copy of it elsewhere",
        "",
      ].join("\n"),
  });
}

async function setLogLevel(context: Context, level: LogLevel, options: LevelOptions): Promise<void> {
  const answer = await withOperations(context, options, (operations) =>
    operations.setLogLevel({ level, seconds: options.for ?? null }),
  );
  print(context.terminal, answer, {
    json: options.json,
    text: ({ configured, until }) =>
      `the server logs from ${level} on ${until === null ? "until its next start" : `until ${until}`}, then from ${configured}\n`,
  });
}
