import type { WhoisReport } from "@fairlead/control-plane/operations";
import type { Command } from "commander";
import type { CommandContext } from "../../context.ts";
import { readSecretValue } from "../../input/secret-value.ts";
import { CONFIG_OPTION, type LocalOptions, withOperations } from "../../platform/local-admin.ts";
import { print } from "../../terminal/output.ts";
import { visible } from "../../terminal/visible.ts";

/** `fairlead key whois`, on the server's own machine. */
export function addKeyWhoisCommand(key: Command, context: CommandContext): void {
  key
    .command("whois")
    .description("look up a key on the server's machine: its owner, and why it is rejected")
    .argument("[public-part]", "the 16 characters after flk_; if omitted, the whole key is read from stdin")
    .option(...CONFIG_OPTION)
    .option("--json", "print JSON")
    .addHelpText("after", "\nExamples:\n  fairlead key whois 9fK2mQ7xT4bZ1vLw\n  fairlead key whois < key.txt")
    .action((publicPart: string | undefined, options: LocalOptions) => whois(context, publicPart, options));
}

async function whois(context: CommandContext, publicPart: string | undefined, options: LocalOptions): Promise<void> {
  const text = publicPart ?? (await readSecretValue(context.terminal, undefined));
  const report = await withOperations(context, options, (operations) => operations.whoisKey({ text }));
  print(context.terminal, report, { json: options.json, text: describe });
}

const MEANINGS: Readonly<Record<WhoisReport["state"], string>> = {
  good: "works",
  disabled: "is disabled",
  expired: "has expired",
  replaced: "was replaced by a rotation",
  deleted: "was deleted",
  wrong_value: "has this public part but a different secret",
  unknown: "",
};

function describe({ publicId, state, since, by, key }: WhoisReport): string {
  if (key === null) return `${publicId}: unknown: not found among this installation's keys or in its audit log\n`;
  const when = since === null ? "" : ` since ${since}`;
  const who = by === null ? "" : ` (by ${by})`;
  const used = key.lastUsedAt === null ? "never used" : `last used ${key.lastUsedAt}`;
  return (
    visible(`${publicId}: key "${key.name}" (${key.id}) of ${key.projectId} ${MEANINGS[state]}${when}${who}; ${used}`) +
    "\n"
  );
}
