import type { Command } from "commander";
import { CliError } from "./cli-error.ts";
import { type ClientSettings, DEFAULT_BASE_URL, type Environment, readSettings } from "./config.ts";
import type { Context } from "./context.ts";
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
    .option("--base-url <url>", "the platform host (FAIRLEAD_BASE_URL; else that of the last login)")
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
  return command.option("--project <id>", "the project (FAIRLEAD_PROJECT_ID; else that of `fairlead project use`)");
}

/** @param model of the commands that take one. */
export function settingsFrom(options: ClientOptions, env: Environment, model?: string): ClientSettings {
  const flags = {
    FAIRLEAD_BASE_URL: options.baseUrl,
    FAIRLEAD_MODELS_URL: options.modelsUrl,
    FAIRLEAD_PROJECT_ID: options.project,
    FAIRLEAD_MODEL: model,
  };
  return readSettings({ env, flags, envFile: options.envFile });
}

/** The platform host as a command calls it. */
export interface Platform extends Host {
  readonly settings: ClientSettings;
  /** @throws CliError that says how to name a project. */
  projectId(): string;
  /** `/v1/projects/{id}` of that project. */
  projectPath(): string;
}

/** By FAIRLEAD_TOKEN where it is set, else by the login that rests on this machine. @throws CliError */
export function platformHost({ env, logins }: Context, options: ClientOptions): Platform {
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
    renewable: token === null,
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
    renewable: false,
    credential: async () => credential,
  };
}

const NO_PROJECT =
  "No project is named. Choose one for all commands with `fairlead project use ID` (`fairlead project list` shows them), " +
  "or name it with --project or FAIRLEAD_PROJECT_ID.";
