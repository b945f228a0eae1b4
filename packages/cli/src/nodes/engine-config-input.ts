import { readFileSync } from "node:fs";
import { type EngineConfig, engineConfigSchema, PRESET_NAMES } from "@fairlead/protocol/engine-config";
import { type Command, InvalidArgumentError, Option } from "commander";
import { CliError, UsageError } from "../cli-error.ts";
import type { Terminal } from "../terminal.ts";

/** An engine config as people give it: a file, and flags that win over it. */

export interface EngineOptions {
  readonly engineConfig?: string;
  readonly preset?: string;
  readonly image?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly unsetEnv?: readonly string[];
}

type Json = Readonly<Record<string, unknown>>;

export function addEngineOptions(command: Command): Command {
  return command
    .option("--engine-config <file>", "the whole engine config, YAML or JSON; -: standard input")
    .addOption(new Option("--preset <name>", "engine preset").choices(PRESET_NAMES))
    .option("--image <reference>", "the engine's container image")
    .option(
      "--env <name=value>",
      "a variable of the engine; may be repeated. Secrets go by `fairlead node secret`",
      addVariable,
    );
}

function addVariable(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, name = "", value = ""] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === "") throw new InvalidArgumentError("Write NAME=value.");
  return { ...before, [name]: value };
}

/** Whether any of these options was given. */
export function givesEngine({ engineConfig, preset, image, env, unsetEnv }: EngineOptions): boolean {
  return [engineConfig, preset, image, env, unsetEnv].some((given) => given !== undefined);
}

/**
 * @param before the config that the flags change; a file takes its place.
 * @returns null where nothing was given. @throws UsageError that names every mistake
 */
export async function readEngineConfig(
  terminal: Terminal,
  options: EngineOptions,
  before: Json = {},
): Promise<EngineConfig | null> {
  if (!givesEngine(options)) return null;
  const base = options.engineConfig === undefined ? before : await readFile(terminal, options.engineConfig);
  const env = { ...variablesOf(base["env"]), ...options.env };
  for (const name of options.unsetEnv ?? []) delete env[name];
  const draft: Json = {
    ...base,
    ...(options.preset === undefined ? {} : { preset: options.preset }),
    ...(options.image === undefined ? {} : { image: options.image }),
    ...(options.env === undefined && options.unsetEnv === undefined ? {} : { env }),
  };
  const parsed = engineConfigSchema.safeParse(draft);
  if (parsed.success) return parsed.data;
  const mistakes = parsed.error.issues.map(({ path, message }) => `${["engineConfig", ...path].join(".")}: ${message}`);
  throw new UsageError(mistakes.join("\n"));
}

async function readFile(terminal: Terminal, file: string): Promise<Json> {
  const text = file === "-" ? await terminal.readInput() : readText(file);
  const { parse } = await import("yaml");
  let value: unknown;
  try {
    // JSON is YAML too.
    value = parse(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`${file === "-" ? "Standard input" : file} is neither YAML nor JSON: ${reason}`, { cause });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Json;
  throw new UsageError(
    `${file === "-" ? "Standard input" : file} must hold the fields of an engine config, such as \`image: …\`.`,
  );
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new CliError(`${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

function variablesOf(value: unknown): Record<string, string> {
  return typeof value === "object" && value !== null ? { ...(value as Record<string, string>) } : {};
}
