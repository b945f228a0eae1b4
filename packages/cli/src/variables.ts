import { type Command, InvalidArgumentError } from "commander";
import type { Fields } from "./fields-file.ts";

/** Environment variables of a config, as options that change single ones. */

export interface VariableOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly unsetEnv?: readonly string[];
}

/** @param whose what they are variables of, and where its secrets go, for people. */
export function addVariableOption(command: Command, whose: string): Command {
  return command.option("--env <name=value>", `a variable of ${whose}`, addVariable);
}

export function addUnsetVariableOption(command: Command): Command {
  return command.option("--unset-env <name>", "take a variable away; may be repeated", addName);
}

/** @returns the field to set in a config; none where nothing was given. */
export function changedVariables(before: Fields, { env, unsetEnv }: VariableOptions): Fields {
  if (env === undefined && unsetEnv === undefined) return {};
  const changed = { ...variablesOf(before["env"]), ...env };
  for (const name of unsetEnv ?? []) delete changed[name];
  return { env: changed };
}

function addVariable(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, name = "", value = ""] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === "") throw new InvalidArgumentError("Write NAME=value.");
  return { ...before, [name]: value };
}

function addName(name: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), name];
}

function variablesOf(value: unknown): Record<string, string> {
  return typeof value === "object" && value !== null ? { ...(value as Record<string, string>) } : {};
}
