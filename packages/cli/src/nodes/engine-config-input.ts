import { type EngineConfig, engineConfigSchema, PRESET_NAMES } from "@fairlead/protocol/engine-config";
import { type Command, Option } from "commander";
import { UsageError } from "../cli-error.ts";
import { type Fields, readFieldsFile } from "../input/fields-file.ts";
import { addVariableOption, changedVariables, type VariableOptions } from "../input/variables.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Reads an engine config from a file and flags; flags override the file. */

export interface EngineOptions extends VariableOptions {
  readonly engineConfig?: string;
  readonly preset?: string;
  readonly image?: string;
}

export function addEngineOptions(command: Command): Command {
  command
    .option("--engine-config <file>", "file with the complete engine config, in YAML or JSON, or - for stdin")
    .addOption(new Option("--preset <name>", "engine preset").choices(PRESET_NAMES))
    .option("--image <reference>", "the engine's container image");
  return addVariableOption(command, "the engine; repeatable. For secrets, use `fairlead node secret`");
}

/** Whether any of these options is set. */
function givesEngine({ engineConfig, preset, image, env, unsetEnv }: EngineOptions): boolean {
  return [engineConfig, preset, image, env, unsetEnv].some((given) => given !== undefined);
}

/**
 * @param before the current config, which flags change and a file replaces.
 * @returns null if no option is set. @throws UsageError that lists all mistakes
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
