import { type Command, InvalidArgumentError } from "commander";
import { CliError, UsageError } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import { CONFIG_OPTION, configFileOf, type LocalOptions, withOperations } from "../../platform/local-admin.ts";
import { print } from "../../terminal/output.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { visible } from "../../terminal/visible.ts";

const UNITS = ["B", "kB", "MB", "GB", "TB"] as const;

/** Such as `3.4 MB`. */
function formatBytes(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`;
}

interface BackupOptions extends LocalOptions {
  readonly to: string;
  readonly keep?: number;
}
interface RestoreOptions extends LocalOptions {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}
interface MigrateOptions extends LocalOptions {
  readonly check?: boolean;
}

const JSON_FLAG = ["--json", "print JSON"] as const;

export function addBackupCommands(program: Command, context: CommandContext): void {
  program
    .command("backup")
    .description("back up the store to one file, without the master key; the server may be running")
    .requiredOption("--to <path>", "a file, or a folder (the file name is then generated)")
    .option(
      "--keep <number>",
      "number of this installation's backups to keep in the folder; older ones are deleted",
      parseKeep,
    )
    .option(...CONFIG_OPTION)
    .option(...JSON_FLAG)
    .addHelpText(
      "after",
      "\nExample:\n  fairlead backup --to /var/backups/fairlead/ --keep 14 --config /etc/fairlead/config.yaml",
    )
    .action((options: BackupOptions) => backup(context, options));
  program
    .command("restore")
    .description(
      "replace the store with a backup; the server must be stopped. The current store is set aside, not deleted",
    )
    .argument("<file>", "a file created by `fairlead backup`")
    .option("--dry-run", "verify the backup and print what would be undone, without changing anything")
    .option("--yes", "do not ask for confirmation")
    .option(...CONFIG_OPTION)
    .option(...JSON_FLAG)
    .addHelpText(
      "after",
      "\nStarts a new epoch, which daemons follow. All users must sign in again. Prints what changed since the backup.\n" +
        "\nExamples:\n  fairlead restore /var/backups/fairlead/fairlead-5m2c8d1x-20260302T101112Z.tar.gz --dry-run" +
        "\n  fairlead restore backup.tar.gz --yes --config /etc/fairlead/config.yaml",
    )
    .action((file: string, options: RestoreOptions) => restore(context, file, options));
  program
    .command("migrate")
    .description("back up the store and migrate it to this version; the server also does this when it starts")
    .option("--check", "only print pending migrations; exits with 1 if there are any")
    .option(...CONFIG_OPTION)
    .option(...JSON_FLAG)
    .addHelpText("after", "\nExample:\n  fairlead migrate --check --config /etc/fairlead/config.yaml")
    .action((options: MigrateOptions) => migrate(context, options));
}

async function backup(context: CommandContext, options: BackupOptions): Promise<void> {
  const { to, keep = null, json } = options;
  const configFile = configFileOf(options, context.env) ?? null;
  const onProgress = progressOn(context.terminal, "packed");
  const report = await withOperations(context, options, (operations) =>
    operations.backup({ to, keep, configFile, onProgress }),
  );
  print(context.terminal, report, {
    json,
    text: ({ file, bytes, sha256, removed, alsoKeep }) =>
      [
        `${file} (${formatBytes(bytes)})`,
        `store sha256 ${sha256}`,
        ...removed.map((name) => `removed ${name}`),
        `not included, back up separately: ${alsoKeep.join(", ")}`,
        "",
      ].join("\n"),
  });
}

async function restore(context: CommandContext, file: string, options: RestoreOptions): Promise<void> {
  const { dryRun = false, yes = false, json } = options;
  if (!dryRun && !yes) await confirm(context.terminal, file);
  const onProgress = progressOn(context.terminal, "verified");
  const report = await withOperations(context, options, (operations) =>
    operations.restore({ file, dryRun, onProgress }),
  );
  print(context.terminal, report, { json, text: restoreText });
}

type Report = Awaited<ReturnType<Parameters<Parameters<typeof withOperations>[2]>[0]["restore"]>>;

function restoreText({ manifest, epoch, replaced, sessions, links, recheck }: Report): string {
  const lines = [
    `backup of ${manifest.createdAt} by version ${manifest.program.version}, installation ${manifest.installationId}`,
    epoch === null ? "dry run: nothing was changed" : `restored; started epoch ${epoch}`,
    ...(replaced === null ? [] : [`the previous store is in ${replaced}`]),
    `${sessions} sessions and ${links} unused links from that time are revoked; all users must sign in again`,
    "",
    ...(recheck === null
      ? [`Changes since ${manifest.createdAt} are not known here. Check keys, nodes, members and payments since then.`]
      : recheck.length === 0
        ? ["No relevant changes since then."]
        : ["Check these:"]),
    ...(recheck ?? []).flatMap(({ what, todo, items }) => [
      `${what}: ${todo}`,
      ...items.map((item) => `  ${visible(item)}`),
    ]),
  ];
  return `${lines.join("\n")}\n`;
}

async function confirm(terminal: Terminal, file: string): Promise<void> {
  if (!terminal.inputIsInteractive)
    throw new UsageError("Not a terminal, so there is no confirmation prompt: add --yes, or try --dry-run first.");
  const answer = await terminal.ask(`Replace the store with ${file}? Type yes:`);
  if (answer.trim() !== "yes") throw new UsageError("Aborted. Nothing was changed.");
}

async function migrate(context: CommandContext, options: MigrateOptions): Promise<void> {
  const { check = false, json } = options;
  const { missing } = await withOperations(context, options, (operations) =>
    check ? operations.migrations() : operations.migrate(),
  );
  const done = check ? "pending" : "applied";
  print(
    context.terminal,
    { [check ? "missing" : "applied"]: missing },
    { json, text: () => missing.map((name) => `${name} ${done}\n`).join("") || "the store is up to date\n" },
  );
  if (check && missing.length > 0) throw new CliError("");
}

/** Reports every tenth, which keeps the log short. */
function progressOn(terminal: Terminal, what: string): (done: number, all: number) => void {
  let told = 0;
  return (done, all) => {
    const tenth = all === 0 ? 10 : Math.floor((done / all) * 10);
    if (tenth <= told || all < WORTH_TELLING) return;
    told = tenth;
    terminal.note(`${what} ${tenth * 10}% of ${formatBytes(all)}`);
  };
}

/** Smaller stores finish too fast to need progress lines. */
const WORTH_TELLING = 100_000_000;

function parseKeep(text: string): number {
  const keep = Number(text);
  if (!Number.isInteger(keep) || keep < 1) throw new InvalidArgumentError("Must be an integer of 1 or more.");
  return keep;
}
