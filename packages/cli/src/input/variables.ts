import { type Command, InvalidArgumentError } from "commander";
import type { Fields } from "./fields-file.ts";

/** Options that set and remove environment variables of a config. */

export interface VariableOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly unsetEnv?: readonly string[];
}

/** @param whose the rest of the help text: the owner and where its secrets go. */
export function addVariableOption(command: Command, whose: string): Command {
  return command.option("--env <name=value>", `set an environment variable of ${whose}`, addVariable);
}

export function addUnsetVariableOption(command: Command): Command {
  return command.option("--unset-env <name>", "remove an environment variable; repeatable", addName);
}

/** @returns the `env` field of a config, or no field if no option is set. */
export function changedVariables(before: Fields, { env, unsetEnv }: VariableOptions): Fields {
  if (env === undefined && unsetEnv === undefined) return {};
  const changed = { ...variablesOf(before["env"]), ...env };
  for (const name of unsetEnv ?? []) delete changed[name];
  return { env: changed };
}

function addVariable(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, name = "", value = ""] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === "") throw new InvalidArgumentError("Must be NAME=value.");
  return { ...before, [name]: value };
}

function addName(name: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), name];
}

function variablesOf(value: unknown): Record<string, string> {
  return typeof value === "object" && value !== null ? { ...(value as Record<string, string>) } : {};
}
