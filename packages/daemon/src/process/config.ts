import { type ServiceManager, serviceManagerOf } from "@fairlead/protocol/values/service-manager";
import { InvalidProxy, ProxyRules, proxyEnvironment } from "@fairlead/wire/proxy/proxy-rules";
import { z } from "zod";
import { DEFAULT_WORKLOAD_SUBNETS, isPool } from "../runtime/subnets.ts";
import { DAEMON_LOG_LEVELS, type DaemonLogLevel } from "./log.ts";
import { DaemonStartError, EXIT } from "./start-error.ts";

/** The daemon's settings. Flags override the environment, which overrides systemd's folders and the defaults. */
export interface DaemonConfig {
  readonly stateDir: string;
  /** Folder of decrypted secrets; should be on a tmpfs. */
  readonly runtimeDir: string;
  readonly bootstrapTokenFile: string | null;
  readonly dockerSocket: string;
  /** Address pool for workload networks. */
  readonly workloadSubnets: string;
  readonly logLevel: DaemonLogLevel;
  readonly insecure: boolean;
  /** PEM file of additional certificate authorities, or null. */
  readonly caFile: string | null;
  readonly proxies: ProxyRules;
  /** Length of a version's trial, from its start. */
  readonly trialSeconds: number;
  readonly serviceManager: ServiceManager;
}

export interface Flags {
  readonly stateDir?: string | undefined;
  readonly runtimeDir?: string | undefined;
  readonly bootstrapTokenFile?: string | undefined;
  readonly dockerSocket?: string | undefined;
  readonly workloadSubnets?: string | undefined;
  readonly logLevel?: string | undefined;
  readonly insecure?: boolean | undefined;
  readonly caFile?: string | undefined;
}

export type DaemonEnvironment = Readonly<Record<string, string | undefined>>;

export function daemonEnvironment(): DaemonEnvironment {
  return process.env;
}

const TRIAL_RANGE = "must be between 15 and 3600";
const absolutePath = z.string().regex(/^\//, "must be an absolute path");

const configSchema = z.object({
  stateDir: z
    .string({ error: "set --state-dir DIR or FAIRLEAD_DAEMON_STATE_DIR" })
    .min(1, "set --state-dir DIR or FAIRLEAD_DAEMON_STATE_DIR"),
  runtimeDir: absolutePath,
  bootstrapTokenFile: z.string().nullable(),
  dockerSocket: absolutePath,
  workloadSubnets: z.string().refine(isPool, "must be an IPv4 subnet from /13 to /29, such as 198.19.0.0/16"),
  logLevel: z.enum(DAEMON_LOG_LEVELS, { error: `must be one of ${DAEMON_LOG_LEVELS.join(", ")}` }),
  insecure: z.union([z.boolean(), z.enum(["true", "false"]).transform((text) => text === "true")], {
    error: "must be true or false",
  }),
  caFile: absolutePath.nullable(),
  trialSeconds: z.coerce.number({ error: TRIAL_RANGE }).int(TRIAL_RANGE).min(15, TRIAL_RANGE).max(3600, TRIAL_RANGE),
});

const NAMES: Readonly<Record<string, string>> = {
  stateDir: "--state-dir",
  runtimeDir: "--runtime-dir",
  bootstrapTokenFile: "--bootstrap-token-file",
  dockerSocket: "--docker-socket",
  workloadSubnets: "--workload-subnets",
  logLevel: "--log-level",
  insecure: "--insecure",
  caFile: "--ca-file",
  trialSeconds: "FAIRLEAD_DAEMON_TRIAL_SECONDS",
};

/** @throws StartError `usage` that lists all invalid settings. */
export function readConfig(flags: Flags, given: DaemonEnvironment): DaemonConfig {
  // An empty variable counts as unset.
  const env: DaemonEnvironment = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ""));
  const parsed = configSchema.safeParse({
    // systemd's StateDirectory= may name several folders; the first is ours.
    stateDir: flags.stateDir ?? env["FAIRLEAD_DAEMON_STATE_DIR"] ?? env["STATE_DIRECTORY"]?.split(":")[0],
    runtimeDir:
      flags.runtimeDir ??
      env["FAIRLEAD_DAEMON_RUNTIME_DIR"] ??
      env["RUNTIME_DIRECTORY"]?.split(":")[0] ??
      "/run/fairlead-daemon",
    bootstrapTokenFile: flags.bootstrapTokenFile ?? env["FAIRLEAD_DAEMON_BOOTSTRAP_TOKEN_FILE"] ?? credential(env),
    dockerSocket: flags.dockerSocket ?? env["FAIRLEAD_DAEMON_DOCKER_SOCKET"] ?? "/var/run/docker.sock",
    workloadSubnets: flags.workloadSubnets ?? env["FAIRLEAD_DAEMON_WORKLOAD_SUBNETS"] ?? DEFAULT_WORKLOAD_SUBNETS,
    logLevel: flags.logLevel ?? env["FAIRLEAD_DAEMON_LOG_LEVEL"] ?? "info",
    insecure: flags.insecure ?? env["FAIRLEAD_DAEMON_INSECURE"] ?? false,
    caFile: flags.caFile ?? (env["FAIRLEAD_DAEMON_CA_FILE"] || null),
    trialSeconds: env["FAIRLEAD_DAEMON_TRIAL_SECONDS"] ?? 300,
  });
  const mistakes = (parsed.error?.issues ?? []).map(
    ({ path, message }) => `${NAMES[String(path[0])] ?? path.join(".")}: ${message}`,
  );
  const proxies = readProxies(env, mistakes);
  if (parsed.success && proxies !== null)
    return { ...parsed.data, proxies, serviceManager: serviceManagerOf(env, process.pid) };
  throw new DaemonStartError(EXIT.usage, mistakes.join("\n"));
}

/** @returns null for an invalid proxy, which is added to `mistakes`. */
function readProxies(env: DaemonEnvironment, mistakes: string[]): ProxyRules | null {
  try {
    return new ProxyRules(proxyEnvironment(env));
  } catch (error) {
    if (!(error instanceof InvalidProxy)) throw error;
    mistakes.push(`${error.setting.toUpperCase()}_PROXY: ${error.message}`);
    return null;
  }
}

/** The path of `LoadCredential=bootstrap-token:…`. The file may be missing after enrolment. */
function credential(env: DaemonEnvironment): string | null {
  const folder = env["CREDENTIALS_DIRECTORY"];
  return folder ? `${folder}/bootstrap-token` : null;
}
