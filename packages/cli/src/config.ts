import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import envPaths from "env-paths";
import { z } from "zod";
import { CliError, UsageError } from "./cli-error.ts";

/** Where the two hosts are and who calls them. Flags win over the environment, the environment over an env file. */

export const DEFAULT_BASE_URL = "http://127.0.0.1:8080";
const DEFAULT_MODELS_URL = "http://127.0.0.1:8081";

const address = z
  .url({ protocol: /^https?$/, error: "must be an http or https address" })
  .transform((url) => url.replace(/\/+$/, ""));
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
  /** Null: not set, so that what is remembered or the default counts. */
  readonly baseUrl: string | null;
  readonly modelsUrl: string;
  find(name: SettingName): string | null;
  /** @throws CliError that names the variable to set. */
  required(name: SettingName): string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

export interface SettingSources {
  readonly env: Environment;
  readonly flags: Partial<Record<SettingName, string | undefined>>;
  /** A file of `NAME=value` lines, as the quickstart writes it. */
  readonly envFile?: string | undefined;
}

/** The environment of this process, read here and nowhere else. */
export function processEnvironment(): Environment {
  return process.env;
}

/** Where the command line keeps what outlives one run: `$XDG_CONFIG_HOME/fairlead` on Linux. */
export function userConfigDir(): string {
  return envPaths("fairlead", { suffix: "" }).config;
}

/** @throws UsageError that lists every setting with a wrong value. */
export function readSettings({ env, flags, envFile }: SettingSources): ClientSettings {
  const names = Object.keys(settingsSchema.shape) as SettingName[];
  const file = envFile === undefined ? {} : readEnvFile(envFile);
  const found = Object.fromEntries(names.map((name) => [name, flags[name] ?? env[name] ?? file[name]]));
  const parsed = settingsSchema.safeParse(found);
  if (!parsed.success) {
    throw new UsageError(parsed.error.issues.map((issue) => `${issue.path.join(".")} ${issue.message}`).join("\n"));
  }
  return {
    baseUrl: parsed.data.FAIRLEAD_BASE_URL ?? null,
    modelsUrl: parsed.data.FAIRLEAD_MODELS_URL,
    find: (name) => parsed.data[name] ?? null,
    required: (name) => parsed.data[name] ?? missing(name),
  };
}

function readEnvFile(path: string): Environment {
  try {
    return parseEnv(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new CliError(`Cannot read the env file ${path}. The quickstart writes one to .fairlead/quickstart.env.`, {
      cause,
    });
  }
}

function missing(name: SettingName): never {
  throw new CliError(
    `${name} is not set. Set it in the environment, or name a file that holds it: --env-file .fairlead/quickstart.env`,
  );
}
