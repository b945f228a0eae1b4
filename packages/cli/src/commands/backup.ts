import { type Command, InvalidArgumentError } from "commander";
import { formatBytes } from "../bytes.ts";
import { CliError, UsageError } from "../cli-error.ts";
import type { Context } from "../context.ts";
import { type LocalOptions, withOperations } from "../local-admin.ts";
import { print } from "../output.ts";
import type { Terminal } from "../terminal.ts";
import { visible } from "../visible.ts";

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

const CONFIG = ["--config <file>", "the server's configuration file; it names the data folder"] as const;
const JSON_FLAG = ["--json", "print the answer as JSON"] as const;

export function addBackupCommands(program: Command, context: Context): void {
  program
    .command("backup")
    .description("copy the store into one file, while the server runs or not; never the master key")
    .requiredOption("--to <path>", "a folder, where the backup gets a name of its own, or a file")
    .option("--keep <number>", "how many of this installation's backups the folder keeps; older ones go", parseKeep)
    .option(...CONFIG)
    .option(...JSON_FLAG)
    .addHelpText(
      "after",
      "\nExample:\n  fairlead backup --to /var/backups/fairlead/ --keep 14 --config /etc/fairlead/config.yaml",
    )
    .action((options: BackupOptions) => backup(context, options));
  program
    .command("restore")
    .description("put a backup in the store's place; the server must be stopped, and the store before is kept aside")
    .argument("<file>", "what `fairlead backup` wrote")
    .option("--dry-run", "verify the backup, say what would be taken back, and change nothing")
    .option("--yes", "do not ask")
    .option(...CONFIG)
    .option(...JSON_FLAG)
    .addHelpText(
      "after",
      "\nA new epoch begins, so that daemons follow; everybody has to sign in again. What happened since the backup is listed.\n" +
        "\nExamples:\n  fairlead restore /var/backups/fairlead/fairlead-5m2c8d1x-20260302T101112Z.tar.gz --dry-run" +
        "\n  fairlead restore backup.tar.gz --yes --config /etc/fairlead/config.yaml",
    )
    .action((file: string, options: RestoreOptions) => restore(context, file, options));
  program
    .command("migrate")
    .description("bring the store to this version now, with a backup before; a start does the same by itself")
    .option("--check", "only say what would be done: ends with 1 if there is anything")
    .option(...CONFIG)
    .option(...JSON_FLAG)
    .addHelpText("after", "\nExample:\n  fairlead migrate --check --config /etc/fairlead/config.yaml")
    .action((options: MigrateOptions) => migrate(context, options));
}

async function backup(context: Context, options: BackupOptions): Promise<void> {
  const { to, keep = null, config: configFile = null, json } = options;
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
        `not in it, keep them too: ${alsoKeep.join(", ")}`,
        "",
      ].join("\n"),
  });
}

async function restore(context: Context, file: string, options: RestoreOptions): Promise<void> {
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
    epoch === null ? "nothing was changed: this was a dry run" : `restored; epoch ${epoch} began`,
    ...(replaced === null ? [] : [`the store before is in ${replaced}`]),
    `${sessions} sessions and ${links} open links of that time end; everybody signs in again`,
    "",
    ...(recheck === null
      ? [
          `What happened since ${manifest.createdAt} is not known here. Look after keys, nodes, members and payments of that time.`,
        ]
      : recheck.length === 0
        ? ["Nothing that counts was changed since."]
        : ["Look after this:"]),
    ...(recheck ?? []).flatMap(({ what, todo, items }) => [
      `${what}: ${todo}`,
      ...items.map((item) => `  ${visible(item)}`),
    ]),
  ];
  return `${lines.join("\n")}\n`;
}

async function confirm(terminal: Terminal, file: string): Promise<void> {
  if (!terminal.inputIsInteractive)
    throw new UsageError("Nobody can be asked here: add --yes, or try --dry-run first.");
  const answer = await terminal.ask(`Put ${file} in the store's place? Type yes:`);
  if (answer.trim() !== "yes") throw new UsageError("Nothing was changed.");
}

async function migrate(context: Context, options: MigrateOptions): Promise<void> {
  const { check = false, json } = options;
  const { missing } = await withOperations(context, options, (operations) =>
    check ? operations.migrations() : operations.migrate(),
  );
  const done = check ? "to be applied" : "applied";
  print(
    context.terminal,
    { [check ? "missing" : "applied"]: missing },
    { json, text: () => missing.map((name) => `${name} ${done}\n`).join("") || "the store is of this version\n" },
  );
  if (check && missing.length > 0) throw new CliError("");
}

/** Tenths, so that a long backup shows that it goes on and a log stays short. */
function progressOn(terminal: Terminal, what: string): (done: number, all: number) => void {
  let told = 0;
  return (done, all) => {
    const tenth = all === 0 ? 10 : Math.floor((done / all) * 10);
    if (tenth <= told || all < WORTH_TELLING) return;
    told = tenth;
    terminal.note(`${what} ${tenth * 10}% of ${formatBytes(all)}`);
  };
}

/** Less is done before somebody has read a line. */
const WORTH_TELLING = 100_000_000;

function parseKeep(text: string): number {
  const keep = Number(text);
  if (!Number.isInteger(keep) || keep < 1) throw new InvalidArgumentError("It must be a whole number from 1.");
  return keep;
}
