import { type AgentConfig, agentConfigSchema } from "@fairlead/protocol/agents";
import type { Command } from "commander";
import { UsageError } from "../cli-error.ts";
import { type Fields, readFieldsFile } from "../fields-file.ts";
import type { Terminal } from "../terminal.ts";
import { addVariableOption, changedVariables, type VariableOptions } from "../variables.ts";

/** An agent's config as people give it: a file, and flags that win over it. */

export interface AgentConfigOptions extends VariableOptions {
  readonly config?: string;
}

export function addAgentConfigOptions(command: Command): Command {
  command.option("--config <file>", "the whole config, YAML or JSON; -: standard input");
  return addVariableOption(command, "the agent; may be repeated. Secrets go by `fairlead agent secret`");
}

/** Whether any of these options was given. */
export function givesConfig({ config, env, unsetEnv }: AgentConfigOptions): boolean {
  return [config, env, unsetEnv].some((given) => given !== undefined);
}

/** @param before the config that the flags change; a file takes its place. @throws UsageError that names every mistake */
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
