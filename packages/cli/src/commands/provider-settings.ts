import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { z } from "zod";
import { CliError, UsageError } from "../cli-error.ts";
import type { Terminal } from "../terminal.ts";

/** The options that say what a provider is, for those who make one and those who change one. */
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
    .option("--url <url>", "the base URL, as SDKs take it: https://api.example.com/v1")
    .option("--credential-file <file>", "where the credential stands; - for standard input")
    .option("--credential-header <name>", "the header that carries it, where that is not `authorization`")
    .option("--protocol <name>", "chat or responses; may be repeated", collect)
    .option("--model <name>", "a model that it has, as it calls it; may be repeated", collect)
    .option("--discovery", "ask it for its models")
    .option("--no-discovery", "do not ask it for its models")
    .option("--header <name=value>", "a header for every call; may be repeated", collect)
    .option("--forward-header <name>", "a caller's header that may go on; may be repeated", collect)
    .option(
      "--settings <file>",
      "a JSON file with more fields, such as models with prices (docs/providers.md); - for standard input",
    );
}

const settingsFile = z.record(z.string(), z.unknown());

/** The body's fields. Flags win over the file. @throws CliError, UsageError */
export async function settingFields(terminal: Terminal, options: SettingOptions): Promise<Record<string, unknown>> {
  const { url, credentialHeader, protocol, model, discovery, header, forwardHeader } = options;
  if (options.credentialFile === "-" && options.settings === "-") {
    throw new UsageError("standard input can be the credential or the settings, not both");
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
  if (credential === "") throw new CliError(`${file === "-" ? "Standard input" : file} holds no credential.`);
  return credential;
}

async function settingsFrom(terminal: Terminal, file: string | undefined): Promise<Record<string, unknown>> {
  if (file === undefined) return {};
  try {
    return settingsFile.parse(JSON.parse(await read(terminal, file)));
  } catch (cause) {
    if (cause instanceof CliError) throw cause;
    throw new CliError(`${file === "-" ? "Standard input" : file} holds no JSON object.`, { cause });
  }
}

async function read(terminal: Terminal, file: string): Promise<string> {
  if (file === "-") return terminal.readInput();
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new CliError(`${file} cannot be read.`, { cause });
  }
}

function splitHeader(text: string): [string, string] {
  const at = text.indexOf("=");
  if (at < 1) throw new UsageError(`--header takes name=value, not "${text}"`);
  return [text.slice(0, at), text.slice(at + 1)];
}

function withoutUndefined(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
