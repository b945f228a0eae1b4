import type { LocalAdmin } from "@fairlead/control-plane/admin";
import { type Command, Option } from "commander";
import { CliError } from "../cli-error.ts";
import type { Context } from "../context.ts";
import { parseDuration } from "../duration.ts";
import { type LocalOptions, withLocalAdmin } from "../local-admin.ts";
import { formatDollars } from "../money.ts";
import { print } from "../output.ts";
import { addAdminOperations } from "./admin-operations.ts";

interface CreateUserOptions extends LocalOptions {
  readonly email: string;
  readonly name: string;
  readonly platformAdmin?: boolean;
}
interface TokenOptions extends LocalOptions {
  readonly email: string;
  readonly ttl: number;
}

interface RotateOptions extends LocalOptions {
  readonly forgetFormer?: boolean;
}

const DEFAULT_TTL = "12h";

export function addAdminCommands(program: Command, context: Context): void {
  const admin = program
    .command("admin")
    .description("administer this installation from its own machine, through the server's data folder");
  addLocalOptions(admin.command("create-user"))
    .description("make a user, or find the one with this e-mail address")
    .requiredOption("--email <address>", "e-mail address")
    .requiredOption("--name <name>", "name that others see")
    .option("--platform-admin", "may administer the whole platform")
    .addHelpText(
      "after",
      '\nExample:\n  fairlead admin create-user --email ann@example.org --name "Ann" --platform-admin',
    )
    .action((options: CreateUserOptions) => createUser(context, options));
  addLocalOptions(admin.command("token"))
    .description("make a session token for a user")
    .requiredOption("--email <address>", "e-mail address of the user")
    .addOption(
      new Option("--ttl <duration>", "lifetime: 12h, 30m, 7d or seconds")
        .argParser(parseDuration)
        .default(parseDuration(DEFAULT_TTL), DEFAULT_TTL),
    )
    .addHelpText(
      "after",
      "\nExample:\n  export FAIRLEAD_TOKEN=$(fairlead admin token --email ann@example.org --ttl 12h)",
    )
    .action((options: TokenOptions) => createToken(context, options));
  addLocalOptions(admin.command("reset-link"))
    .description("make a link by which a user sets a new password; it is good for one use within an hour")
    .argument("<email>", "e-mail address of the user")
    .addHelpText("after", "\nExample:\n  fairlead admin reset-link ann@example.org")
    .action((email: string, options: LocalOptions) =>
      showLink(context, options, (local) => local.resetLink({ email })),
    );
  addLocalOptions(admin.command("set-up-link"))
    .description("make the link by which the first administrator makes their account")
    .addHelpText("after", "\nExample:\n  fairlead admin set-up-link --config /etc/fairlead/config.yaml")
    .action((options: LocalOptions) => showLink(context, options, (local) => local.setUpLink()));
  addLocalOptions(admin.command("rotate-signing-key"))
    .description("sign tokens with a new key from now on; those of the key before are good until they run out")
    .option("--forget-former", "end all tokens of former keys at once: for a key that leaked")
    .addHelpText("after", "\nExample:\n  fairlead admin rotate-signing-key")
    .action((options: RotateOptions) => rotateSigningKey(context, options));
  addLocalOptions(admin.command("check-ledger"))
    .description("prove that all money is accounted for; reads the whole ledger, and ends with 1 if something is wrong")
    .addHelpText("after", "\nExample:\n  fairlead admin check-ledger --config /etc/fairlead/config.yaml")
    .action((options: LocalOptions) => checkLedger(context, options));
  addAdminOperations(admin, context);
}

function addLocalOptions(command: Command): Command {
  return command
    .option("--config <file>", "the server's configuration file; it names the data folder")
    .option("--json", "print the answer as JSON");
}

async function createUser(context: Context, options: CreateUserOptions): Promise<void> {
  const { email, name, platformAdmin = false } = options;
  const answer = await withLocalAdmin(context, options, (admin) => admin.createUser({ email, name, platformAdmin }));
  print(context.terminal, answer, {
    json: options.json,
    text: ({ user, created }) => `${user.email} (${user.id}) ${created ? "created" : "is there already"}\n`,
  });
}

async function createToken(context: Context, options: TokenOptions): Promise<void> {
  const { email, ttl } = options;
  const answer = await withLocalAdmin(context, options, (admin) => admin.createToken({ email, ttlSeconds: ttl }));
  print(context.terminal, answer, { json: options.json, text: ({ token }) => `${token}\n` });
  if (!options.json) context.terminal.note(`valid until ${answer.expiresAt}`);
}

async function rotateSigningKey(context: Context, options: RotateOptions): Promise<void> {
  const answer = await withLocalAdmin(context, options, (admin) =>
    admin.rotateSigningKey({ forgetFormer: options.forgetFormer ?? false }),
  );
  print(context.terminal, answer, { json: options.json, text: ({ keyId }) => `${keyId} signs from now on\n` });
}

async function showLink(
  context: Context,
  options: LocalOptions,
  make: (admin: LocalAdmin) => Promise<{ readonly url: string; readonly expiresAt: string }>,
): Promise<void> {
  const answer = await withLocalAdmin(context, options, make);
  print(context.terminal, answer, { json: options.json, text: ({ url }) => `${url}\n` });
  if (!options.json) context.terminal.note(`good for one use until ${answer.expiresAt}; whoever has it gets in`);
}

async function checkLedger(context: Context, options: LocalOptions): Promise<void> {
  const report = await withLocalAdmin(context, options, (admin) => admin.checkLedger());
  const { wrong } = report;
  const lines = wrong.map(
    ({ projectId, balance, sum, lowest, held, openHolds, chargedTwice }) =>
      `${projectId}: balance ${signedDollars(balance)}, sum of the ledger ${signedDollars(sum)}, lowest ${signedDollars(lowest)}, ` +
      `held ${signedDollars(held)} of ${signedDollars(openHolds)}, ${chargedTwice} charged twice\n`,
  );
  const all = `${report.projects} projects, ${report.entries} ledger entries: ${wrong.length === 0 ? "all is right" : `${wrong.length} wrong`}\n`;
  print(context.terminal, report, { json: options.json, text: () => lines.join("") + all });
  if (wrong.length > 0) throw new CliError("the ledger is not what it must be; see docs/operations.md");
}

const signedDollars = (nanoDollars: number): string =>
  (nanoDollars < 0 ? "-" : "") + formatDollars(Math.abs(nanoDollars));
