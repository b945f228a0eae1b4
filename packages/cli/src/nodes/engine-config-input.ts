import { type EngineConfig, engineConfigSchema, PRESET_NAMES } from "@fairlead/protocol/engine-config";
import { type Command, Option } from "commander";
import { UsageError } from "../cli-error.ts";
import { type Fields, readFieldsFile } from "../fields-file.ts";
import type { Terminal } from "../terminal.ts";
import { addVariableOption, changedVariables, type VariableOptions } from "../variables.ts";

/** An engine config as people give it: a file, and flags that win over it. */

export interface EngineOptions extends VariableOptions {
  readonly engineConfig?: string;
  readonly preset?: string;
  readonly image?: string;
}

export function addEngineOptions(command: Command): Command {
  command
    .option("--engine-config <file>", "the whole engine config, YAML or JSON; -: standard input")
    .addOption(new Option("--preset <name>", "engine preset").choices(PRESET_NAMES))
    .option("--image <reference>", "the engine's container image");
  return addVariableOption(command, "the engine; may be repeated. Secrets go by `fairlead node secret`");
}

/** Whether any of these options was given. */
function givesEngine({ engineConfig, preset, image, env, unsetEnv }: EngineOptions): boolean {
  return [engineConfig, preset, image, env, unsetEnv].some((given) => given !== undefined);
}

/**
 * @param before the config that the flags change; a file takes its place.
 * @returns null where nothing was given. @throws UsageError that names every mistake
 */
export async function readEngineConfig(
  terminal: Terminal,
  options: EngineOptions,
  before: Fields = {},
): Promise<EngineConfig | null> {
  if (!givesEngine(options)) return null;
  const { engineConfig: file } = options;
  const base =
    file === undefined ? before : await readFieldsFile(terminal, file, "an engine config, such as `image: …`");
  const draft: Fields = {
    ...base,
    ...(options.preset === undefined ? {} : { preset: options.preset }),
    ...(options.image === undefined ? {} : { image: options.image }),
    ...changedVariables(base, options),
  };
  const parsed = engineConfigSchema.safeParse(draft);
  if (parsed.success) return parsed.data;
  const mistakes = parsed.error.issues.map(({ path, message }) => `${["engineConfig", ...path].join(".")}: ${message}`);
  throw new UsageError(mistakes.join("\n"));
}
