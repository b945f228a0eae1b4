import type { Command } from "commander";
import { type ClientSettings, type Environment, readSettings } from "./config.ts";
import type { Host } from "./http-client.ts";

/** The options that every command which calls a host has. Secrets come by environment or file, never by flag: others can read argv. */
export interface ClientOptions {
  readonly baseUrl?: string;
  readonly modelsUrl?: string;
  readonly project?: string;
  readonly envFile?: string;
  readonly json?: boolean;
}

export function addPlatformOptions(command: Command): Command {
  return command
    .option("--base-url <url>", "the platform host (FAIRLEAD_BASE_URL)")
    .option("--env-file <file>", "NAME=value lines to read settings from, such as .fairlead/quickstart.env")
    .option("--json", "print the answer as JSON");
}

export function addInferenceOptions(command: Command): Command {
  return command
    .option("--models-url <url>", "the inference host (FAIRLEAD_MODELS_URL)")
    .option("--env-file <file>", "NAME=value lines to read settings from, such as .fairlead/quickstart.env")
    .option("--json", "print the answer as JSON");
}

export function addProjectOption(command: Command): Command {
  return command.option("--project <id>", "the project (FAIRLEAD_PROJECT_ID)");
}

export function settingsFrom(options: ClientOptions & { model?: string }, env: Environment): ClientSettings {
  const flags = {
    FAIRLEAD_BASE_URL: options.baseUrl,
    FAIRLEAD_MODELS_URL: options.modelsUrl,
    FAIRLEAD_PROJECT_ID: options.project,
    FAIRLEAD_MODEL: options.model,
  };
  return readSettings({ env, flags, envFile: options.envFile });
}

export function platformHost(settings: ClientSettings): Host {
  const credential = settings.required("FAIRLEAD_TOKEN");
  return { name: "platform host", url: settings.baseUrl, credential, urlSetting: "FAIRLEAD_BASE_URL" };
}

export function inferenceHost(settings: ClientSettings): Host {
  const credential = settings.required("FAIRLEAD_API_KEY");
  return { name: "inference host", url: settings.modelsUrl, credential, urlSetting: "FAIRLEAD_MODELS_URL" };
}
