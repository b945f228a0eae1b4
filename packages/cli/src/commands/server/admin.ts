import type { LocalAdmin } from "@fairlead/control-plane/admin";
import { type Command, Option } from "commander";
import { CliError } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import { parseDuration } from "../../input/duration.ts";
import { formatDollarAmount } from "../../input/money.ts";
import { CONFIG_OPTION, type LocalOptions, withLocalAdmin } from "../../platform/local-admin.ts";
import { print } from "../../terminal/output.ts";
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

export function addAdminCommands(program: Command, context: CommandContext): void {
  const admin = program
    .command("admin")
    .description("administer this installation on the server's machine, through its data folder");
  addLocalOptions(admin.command("create-user"))
    .description("create a user, or return the existing user with this email address")
    .requiredOption("--email <address>", "email address")
    .requiredOption("--name <name>", "display name")
    .option("--platform-admin", "make the user a platform administrator")
    .addHelpText(
      "after",
      '\nExample:\n  fairlead admin create-user --email ann@example.org --name "Ann" --platform-admin',
    )
    .action((options: CreateUserOptions) => createUser(context, options));
  addLocalOptions(admin.command("token"))
    .description("create a session token for a user")
    .requiredOption("--email <address>", "the user's email address")
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
    .description("create a password reset link for a user; single use, expires in one hour")
    .argument("<email>", "the user's email address")
    .addHelpText("after", "\nExample:\n  fairlead admin reset-link ann@example.org")
    .action((email: string, options: LocalOptions) =>
      showLink(context, options, (local) => local.resetLink({ email })),
    );
  addLocalOptions(admin.command("set-up-link"))
    .description("create the first-admin setup link")
    .addHelpText("after", "\nExample:\n  fairlead admin set-up-link --config /etc/fairlead/config.yaml")
    .action((options: LocalOptions) => showLink(context, options, (local) => local.setUpLink()));
  addLocalOptions(admin.command("rotate-signing-key"))
    .description("sign tokens with a new key; tokens signed with the old key stay valid until they expire")
    .option("--forget-former", "invalidate all tokens signed with former keys, for example after a leak")
    .addHelpText("after", "\nExample:\n  fairlead admin rotate-signing-key")
    .action((options: RotateOptions) => rotateSigningKey(context, options));
  addLocalOptions(admin.command("check-ledger"))
    .description("verify the ledger (reads all of it); exits with 1 if an entry or balance is wrong")
    .addHelpText("after", "\nExample:\n  fairlead admin check-ledger --config /etc/fairlead/config.yaml")
    .action((options: LocalOptions) => checkLedger(context, options));
  addAdminOperations(admin, context);
}

function addLocalOptions(command: Command): Command {
  return command.option(...CONFIG_OPTION).option("--json", "print JSON");
}

async function createUser(context: CommandContext, options: CreateUserOptions): Promise<void> {
  const { email, name, platformAdmin = false } = options;
  const answer = await withLocalAdmin(context, options, (admin) => admin.createUser({ email, name, platformAdmin }));
  print(context.terminal, answer, {
    json: options.json,
    text: ({ user, created }) => `${user.email} (${user.id}) ${created ? "created" : "already exists"}\n`,
  });
}

async function createToken(context: CommandContext, options: TokenOptions): Promise<void> {
  const { email, ttl } = options;
  const answer = await withLocalAdmin(context, options, (admin) => admin.createToken({ email, ttlSeconds: ttl }));
  print(context.terminal, answer, { json: options.json, text: ({ token }) => `${token}\n` });
  if (!options.json) context.terminal.note(`valid until ${answer.expiresAt}`);
}

async function rotateSigningKey(context: CommandContext, options: RotateOptions): Promise<void> {
  const answer = await withLocalAdmin(context, options, (admin) =>
    admin.rotateSigningKey({ forgetFormer: options.forgetFormer ?? false }),
  );
  print(context.terminal, answer, { json: options.json, text: ({ keyId }) => `tokens are now signed with ${keyId}\n` });
}

async function showLink(
  context: CommandContext,
  options: LocalOptions,
  make: (admin: LocalAdmin) => Promise<{ readonly url: string; readonly expiresAt: string }>,
): Promise<void> {
  const answer = await withLocalAdmin(context, options, make);
  print(context.terminal, answer, { json: options.json, text: ({ url }) => `${url}\n` });
  if (!options.json)
    context.terminal.note(
      `single use, valid until ${answer.expiresAt}; anyone with this link can sign in as this user`,
    );
}

async function checkLedger(context: CommandContext, options: LocalOptions): Promise<void> {
  const report = await withLocalAdmin(context, options, (admin) => admin.checkLedger());
  const { wrong } = report;
  const lines = wrong.map(
    ({ projectId, balance, sum, lowest, held, openHolds, chargedTwice }) =>
      `${projectId}: balance ${signedDollars(balance)}, ledger sum ${signedDollars(sum)}, lowest ${signedDollars(lowest)}, ` +
      `reserved ${signedDollars(held)} of ${signedDollars(openHolds)}, ${chargedTwice} charged twice\n`,
  );
  const all = `${report.projects} projects, ${report.entries} ledger entries: ${wrong.length === 0 ? "OK" : `${wrong.length} wrong`}\n`;
  print(context.terminal, report, { json: options.json, text: () => lines.join("") + all });
  if (wrong.length > 0) throw new CliError("the ledger is inconsistent; see docs/operations.md");
}

const signedDollars = (nanoDollars: number): string =>
  (nanoDollars < 0 ? "-" : "") + formatDollarAmount(Math.abs(nanoDollars));
