import type { Command } from "commander";
import { CliError } from "../cli-error.ts";
import { type ClientSettings, DEFAULT_BASE_URL, type Environment, readSettings } from "../config.ts";
import type { CommandContext } from "../context.ts";
import type { Host } from "./http-client.ts";

/** Options of all commands that call a host. Secrets come from the environment or a file, never a flag: other users can read argv. */
export interface ClientOptions {
  readonly baseUrl?: string;
  readonly modelsUrl?: string;
  readonly project?: string;
  readonly envFile?: string;
  readonly json?: boolean;
}

export function addPlatformOptions(command: Command): Command {
  return command
    .option(
      "--base-url <url>",
      "URL of the platform host (default: $FAIRLEAD_BASE_URL, or the platform of the last login)",
    )
    .option("--env-file <file>", "file with NAME=value settings, such as .fairlead/quickstart.env")
    .option("--json", "print JSON");
}

export function addInferenceOptions(command: Command): Command {
  return command
    .option("--models-url <url>", "URL of the inference host (default: $FAIRLEAD_MODELS_URL)")
    .option("--env-file <file>", "file with NAME=value settings, such as .fairlead/quickstart.env")
    .option("--json", "print JSON");
}

export function addProjectOption(command: Command): Command {
  return command.option(
    "--project <id>",
    "the project (default: $FAIRLEAD_PROJECT_ID, or the one set with `fairlead project use`)",
  );
}

/** @param model the value of `--model`. */
export function settingsFrom(options: ClientOptions, env: Environment, model?: string): ClientSettings {
  const flags = {
    FAIRLEAD_BASE_URL: options.baseUrl,
    FAIRLEAD_MODELS_URL: options.modelsUrl,
    FAIRLEAD_PROJECT_ID: options.project,
    FAIRLEAD_MODEL: model,
  };
  return readSettings({ env, flags, envFile: options.envFile });
}

/** The platform host with the settings of one command. */
export interface PlatformConnection extends Host {
  readonly settings: ClientSettings;
  /** @throws CliError that says how to set a project. */
  projectId(): string;
  /** `/v1/projects/{id}`. */
  projectPath(): string;
}

/** Authenticates with FAIRLEAD_TOKEN or else with the stored login. @throws CliError */
export function platformHost({ env, logins }: CommandContext, options: ClientOptions): PlatformConnection {
  const settings = settingsFrom(options, env);
  const url = settings.baseUrl ?? logins.defaultUrl() ?? DEFAULT_BASE_URL;
  const token = settings.find("FAIRLEAD_TOKEN");
  const projectId = (): string => {
    const id = settings.find("FAIRLEAD_PROJECT_ID") ?? logins.projectId(url);
    if (id === null) throw new CliError(NO_PROJECT);
    return id;
  };
  return {
    name: "platform host",
    url,
    urlSetting: "FAIRLEAD_BASE_URL",
    settings,
    credentialSetting:
      token === null ? null : { name: "FAIRLEAD_TOKEN", source: settings.sourceOf("FAIRLEAD_TOKEN") ?? "" },
    credential: async (spent) => token ?? logins.accessToken(url, spent),
    projectId,
    projectPath: () => `/v1/projects/${encodeURIComponent(projectId())}`,
  };
}

export function inferenceHost(settings: ClientSettings): Host {
  const credential = settings.required("FAIRLEAD_API_KEY");
  return {
    name: "inference host",
    url: settings.modelsUrl,
    urlSetting: "FAIRLEAD_MODELS_URL",
    credentialSetting: { name: "FAIRLEAD_API_KEY", source: settings.sourceOf("FAIRLEAD_API_KEY") ?? "" },
    credential: async () => credential,
  };
}

const NO_PROJECT =
  "No project is set. Set a default with `fairlead project use ID` (`fairlead project list` lists your projects), " +
  "or set --project or FAIRLEAD_PROJECT_ID.";
