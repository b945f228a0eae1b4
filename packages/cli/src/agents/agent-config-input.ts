import { type AgentConfig, agentConfigSchema } from "@fairlead/protocol/agents";
import type { Command } from "commander";
import { UsageError } from "../cli-error.ts";
import { type Fields, readFieldsFile } from "../input/fields-file.ts";
import { addVariableOption, changedVariables, type VariableOptions } from "../input/variables.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Reads an agent config from a file and flags; flags override the file. */

export interface AgentConfigOptions extends VariableOptions {
  readonly config?: string;
}

export function addAgentConfigOptions(command: Command): Command {
  command.option("--config <file>", "file with the complete config, in YAML or JSON, or - for stdin");
  return addVariableOption(command, "the agent; repeatable. For secrets, use `fairlead agent secret`");
}

/** Whether any of these options is set. */
export function givesConfig({ config, env, unsetEnv }: AgentConfigOptions): boolean {
  return [config, env, unsetEnv].some((given) => given !== undefined);
}

/** @param before the current config, which flags change and a file replaces. @throws UsageError that lists all mistakes */
export async function readAgentConfig(
  terminal: Terminal,
  options: AgentConfigOptions,
  before: Fields,
): Promise<AgentConfig> {
  const { config: file } = options;
  const base =
    file === undefined ? before : await readFieldsFile(terminal, file, "an agent's config, such as `port: 8080`");
  const parsed = agentConfigSchema.safeParse({ ...base, ...changedVariables(base, options) });
  if (parsed.success) return parsed.data;
  const mistakes = parsed.error.issues.map(({ path, message }) => `${["config", ...path].join(".")}: ${message}`);
  throw new UsageError(mistakes.join("\n"));
}
