import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { withoutTrailing } from "@fairlead/protocol/values/text";
import envPaths from "env-paths";
import { z } from "zod";
import { CliError, UsageError } from "./cli-error.ts";

/** Client settings. Flags override the environment, which overrides an env file. */

export const DEFAULT_BASE_URL = "http://127.0.0.1:8080";
const DEFAULT_MODELS_URL = "http://127.0.0.1:8081";

const address = z
  .url({ protocol: /^https?$/, error: "must be an HTTP or HTTPS URL" })
  .transform((url) => withoutTrailing(url, "/"));
const text = z.string().min(1, "must not be empty").optional();

const settingsSchema = z.object({
  FAIRLEAD_BASE_URL: address.optional(),
  FAIRLEAD_MODELS_URL: address.default(DEFAULT_MODELS_URL),
  FAIRLEAD_TOKEN: text,
  FAIRLEAD_PROJECT_ID: text,
  FAIRLEAD_API_KEY: text,
  FAIRLEAD_MODEL: text,
});
export type SettingName = keyof z.infer<typeof settingsSchema>;

export interface ClientSettings {
  /** Null if not set; the stored login or the default applies then. */
  readonly baseUrl: string | null;
  readonly modelsUrl: string;
  find(name: SettingName): string | null;
  /** The source of a setting, for messages: `an option`, `the environment`, an env file's path, or null if not set. */
  sourceOf(name: SettingName): string | null;
  /** @throws CliError that names the variable to set. */
  required(name: SettingName): string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

export interface SettingSources {
  readonly env: Environment;
  readonly flags: Partial<Record<SettingName, string | undefined>>;
  /** A file of `NAME=value` lines. */
  readonly envFile?: string | undefined;
}

/** The only place that reads the process environment. */
export function processEnvironment(): Environment {
  return process.env;
}

/** The folder of persistent state: `$XDG_CONFIG_HOME/fairlead` on Linux. */
export function userConfigDir(): string {
  return envPaths("fairlead", { suffix: "" }).config;
}

/** @throws UsageError that lists all invalid settings. */
export function readSettings({ env, flags, envFile }: SettingSources): ClientSettings {
  const names = Object.keys(settingsSchema.shape) as SettingName[];
  const file = envFile === undefined ? {} : readEnvFile(envFile);
  // Scripts and CI systems pass on unset variables as empty ones.
  const inherited = (name: SettingName): string | undefined => env[name] || file[name] || undefined;
  const found = Object.fromEntries(names.map((name) => [name, flags[name] ?? inherited(name)]));
  const parsed = settingsSchema.safeParse(found);
  if (!parsed.success) {
    throw new UsageError(parsed.error.issues.map((issue) => `${issue.path.join(".")} ${issue.message}`).join("\n"));
  }
  return {
    baseUrl: parsed.data.FAIRLEAD_BASE_URL ?? null,
    modelsUrl: parsed.data.FAIRLEAD_MODELS_URL,
    find: (name) => parsed.data[name] ?? null,
    sourceOf: (name) => {
      if (flags[name] !== undefined) return "an option";
      if (env[name]) return "the environment";
      return file[name] ? (envFile ?? null) : null;
    },
    required: (name) => parsed.data[name] ?? missing(name),
  };
}

function readEnvFile(path: string): Environment {
  try {
    return parseEnv(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new CliError(`Cannot read the env file ${path}. The quickstart creates one at .fairlead/quickstart.env.`, {
      cause,
    });
  }
}

function missing(name: SettingName): never {
  throw new CliError(
    `${name} is not set. Set it in the environment, or in a file and use --env-file, such as --env-file .fairlead/quickstart.env`,
  );
}
