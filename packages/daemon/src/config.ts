import { type ServiceManager, serviceManagerOf } from "@fairlead/protocol/service-manager";
import { z } from "zod";
import { LOG_LEVELS, type LogLevel } from "./log.ts";
import { EXIT, StartError } from "./start-error.ts";

/** The daemon's settings: flags win over the environment, the environment over systemd's folders and the defaults. */
export interface DaemonConfig {
  readonly stateDir: string;
  /** Holds opened secrets while they are in use; best on a tmpfs. */
  readonly runtimeDir: string;
  readonly bootstrapTokenFile: string | null;
  readonly dockerSocket: string;
  readonly logLevel: LogLevel;
  readonly insecure: boolean;
  /** How long a version on trial has to prove itself, from its start on. */
  readonly trialSeconds: number;
  readonly serviceManager: ServiceManager;
}

export interface Flags {
  readonly stateDir?: string | undefined;
  readonly runtimeDir?: string | undefined;
  readonly bootstrapTokenFile?: string | undefined;
  readonly dockerSocket?: string | undefined;
  readonly logLevel?: string | undefined;
  readonly insecure?: boolean | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

export function processEnvironment(): Environment {
  return process.env;
}

const TRIAL_RANGE = "must be from 15 to 3600";
const absolutePath = z.string().regex(/^\//, "must be an absolute path");

const configSchema = z.object({
  stateDir: z
    .string({ error: "give --state-dir DIR or set FAIRLEAD_DAEMON_STATE_DIR" })
    .min(1, "give --state-dir DIR or set FAIRLEAD_DAEMON_STATE_DIR"),
  runtimeDir: absolutePath,
  bootstrapTokenFile: z.string().nullable(),
  dockerSocket: absolutePath,
  logLevel: z.enum(LOG_LEVELS, { error: `must be one of ${LOG_LEVELS.join(", ")}` }),
  insecure: z.union([z.boolean(), z.enum(["true", "false"]).transform((text) => text === "true")], {
    error: "must be true or false",
  }),
  trialSeconds: z.coerce.number({ error: TRIAL_RANGE }).int(TRIAL_RANGE).min(15, TRIAL_RANGE).max(3600, TRIAL_RANGE),
});

const NAMES: Readonly<Record<string, string>> = {
  stateDir: "--state-dir",
  runtimeDir: "--runtime-dir",
  bootstrapTokenFile: "--bootstrap-token-file",
  dockerSocket: "--docker-socket",
  logLevel: "--log-level",
  insecure: "--insecure",
  trialSeconds: "FAIRLEAD_DAEMON_TRIAL_SECONDS",
};

/** @throws StartError `usage` that names every mistake at once. */
export function readConfig(flags: Flags, env: Environment): DaemonConfig {
  const parsed = configSchema.safeParse({
    // systemd's StateDirectory= may name several folders; ours is the first.
    stateDir: flags.stateDir ?? env["FAIRLEAD_DAEMON_STATE_DIR"] ?? env["STATE_DIRECTORY"]?.split(":")[0],
    runtimeDir:
      flags.runtimeDir ??
      env["FAIRLEAD_DAEMON_RUNTIME_DIR"] ??
      env["RUNTIME_DIRECTORY"]?.split(":")[0] ??
      "/run/fairlead-daemon",
    bootstrapTokenFile: flags.bootstrapTokenFile ?? env["FAIRLEAD_DAEMON_BOOTSTRAP_TOKEN_FILE"] ?? credential(env),
    dockerSocket: flags.dockerSocket ?? env["FAIRLEAD_DAEMON_DOCKER_SOCKET"] ?? "/var/run/docker.sock",
    logLevel: flags.logLevel ?? env["FAIRLEAD_DAEMON_LOG_LEVEL"] ?? "info",
    insecure: flags.insecure ?? env["FAIRLEAD_DAEMON_INSECURE"] ?? false,
    trialSeconds: env["FAIRLEAD_DAEMON_TRIAL_SECONDS"] ?? 300,
  });
  if (parsed.success) return { ...parsed.data, serviceManager: serviceManagerOf(env, process.pid) };
  const mistakes = parsed.error.issues.map(
    ({ path, message }) => `${NAMES[String(path[0])] ?? path.join(".")}: ${message}`,
  );
  throw new StartError(EXIT.usage, mistakes.join("\n"));
}

/** Where `LoadCredential=bootstrap-token:…` puts the token. The file may be missing: a node is enrolled once. */
function credential(env: Environment): string | null {
  const folder = env["CREDENTIALS_DIRECTORY"];
  return folder ? `${folder}/bootstrap-token` : null;
}
