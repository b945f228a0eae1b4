import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { z } from "zod";
import { CliError, UsageError } from "../../cli-error.ts";
import type { Terminal } from "../../terminal/terminal.ts";

/** Options of `provider create` and `provider update`. */
export interface SettingOptions {
  readonly url?: string;
  readonly credentialFile?: string;
  readonly credentialHeader?: string;
  readonly protocol?: readonly string[];
  readonly model?: readonly string[];
  readonly discovery?: boolean;
  readonly header?: readonly string[];
  readonly forwardHeader?: readonly string[];
  readonly settings?: string;
}

const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];

export function addSettingOptions(command: Command): Command {
  return command
    .option("--url <url>", "the base URL, in the form SDKs use: https://api.example.com/v1")
    .option("--credential-file <file>", "file that contains the API key, or - for stdin")
    .option("--credential-header <name>", "header to send the API key in (default: authorization)")
    .option("--protocol <name>", "chat or responses; repeatable", collect)
    .option("--model <name>", "a model, by the provider's name for it; repeatable", collect)
    .option("--discovery", "list models by querying the provider")
    .option("--no-discovery", "do not query the provider for models")
    .option("--header <name=value>", "header to add to every call; repeatable", collect)
    .option("--forward-header <name>", "client header to pass through to the provider; repeatable", collect)
    .option(
      "--settings <file>",
      "JSON file with more fields, such as models with prices (docs/providers.md), or - for stdin",
    );
}

const settingsFile = z.record(z.string(), z.unknown());

/** @returns the request body; flags override the file. @throws CliError, UsageError */
export async function settingFields(terminal: Terminal, options: SettingOptions): Promise<Record<string, unknown>> {
  const { url, credentialHeader, protocol, model, discovery, header, forwardHeader } = options;
  if (options.credentialFile === "-" && options.settings === "-") {
    throw new UsageError("only one of --credential-file and --settings can read stdin");
  }
  const flags = {
    baseUrl: url,
    credential: await credentialFrom(terminal, options.credentialFile),
    credentialHeader,
    protocols: protocol,
    models: model?.map((name) => ({ name })),
    discovery,
    headers: header === undefined ? undefined : Object.fromEntries(header.map(splitHeader)),
    forwardHeaders: forwardHeader,
  };
  return { ...(await settingsFrom(terminal, options.settings)), ...withoutUndefined(flags) };
}

async function credentialFrom(terminal: Terminal, file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const credential = (await read(terminal, file)).trim();
  if (credential === "") throw new CliError(`${file === "-" ? "Stdin" : file} is empty: expected a credential.`);
  return credential;
}

async function settingsFrom(terminal: Terminal, file: string | undefined): Promise<Record<string, unknown>> {
  if (file === undefined) return {};
  try {
    return settingsFile.parse(JSON.parse(await read(terminal, file)));
  } catch (cause) {
    if (cause instanceof CliError) throw cause;
    throw new CliError(`${file === "-" ? "Stdin" : file} does not contain a JSON object.`, { cause });
  }
}

async function read(terminal: Terminal, file: string): Promise<string> {
  if (file === "-") return terminal.readInput();
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new CliError(`Cannot read ${file}.`, { cause });
  }
}

function splitHeader(text: string): [string, string] {
  const at = text.indexOf("=");
  if (at < 1) throw new UsageError(`--header must be name=value, not "${text}"`);
  return [text.slice(0, at), text.slice(at + 1)];
}

function withoutUndefined(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
