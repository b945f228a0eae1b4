import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { parseBootstrapToken } from "@fairlead/protocol/enrollment";
import type { Clock } from "@fairlead/protocol/values/clock";
import { urlBelow } from "@fairlead/protocol/values/url";
import { readDiskSpace } from "../host/disk.ts";
import { readGpus } from "../host/gpus.ts";
import { readStaticFacts } from "../host/host-facts.ts";
import { runsSystemd } from "../host/systemd.ts";
import type { HttpClient } from "../link/http-client.ts";
import type { DaemonConfig } from "../process/config.ts";
import { reasonOf } from "../process/log.ts";
import type { ContainerRuntime } from "../runtime/container-runtime.ts";
import type { DockerRuntime } from "../runtime/docker/docker-runtime.ts";
import { diskFiles } from "../state/files.ts";
import { IdentityStore } from "../state/identity-store.ts";
import {
  architectureCheck,
  type Check,
  clockCheck,
  diskCheck,
  dockerCheck,
  gpuCheck,
  networkCheck,
  type PlatformReading,
  platformCheck,
  proxyCheck,
  secretsCheck,
  systemCheck,
  systemdCheck,
} from "./findings.ts";

export interface DoctorDeps {
  readonly config: Pick<DaemonConfig, "stateDir" | "runtimeDir" | "bootstrapTokenFile" | "proxies">;
  /** Null: take the URL from the identity or the bootstrap token. */
  readonly platformUrl: string | null;
  readonly runtime: Pick<ContainerRuntime, "version"> & Pick<DockerRuntime, "changeNetwork">;
  readonly http: HttpClient;
  readonly clock: Clock;
}

const ANSWER_MS = 10_000;
/** File system types in Linux's `statfs`. */
const IN_MEMORY = new Set([0x01021994, 0x858458f6]);

/** Checks the requirements of the daemon on this machine. Read-only. */
export async function examineMachine(deps: DoctorDeps): Promise<Check[]> {
  const { config, runtime } = deps;
  const engine = await runtime.version().catch((error: unknown) => reasonOf(error));
  const away = typeof engine === "string" ? engine : null;
  const root = typeof engine === "string" ? config.stateDir : engine.rootFolder;
  const version = typeof engine === "string" ? "" : engine.version;
  const engineUsesProxy = typeof engine === "string" ? null : engine.usesProxy;
  const [facts, systemd, space, onTmpfs, platform, gpus, network] = await Promise.all([
    readStaticFacts(),
    runsSystemd(),
    readDiskSpace(root),
    isInMemory(config.runtimeDir),
    askPlatform(deps),
    readGpus(),
    away === null ? tryRules(runtime) : null,
  ]);
  const { operatingSystem, kernel, architecture } = facts;
  return [
    { name: "system", ...systemCheck(process.platform, `${operatingSystem}, kernel ${kernel}`) },
    { name: "architecture", ...architectureCheck(architecture) },
    { name: "systemd", ...systemdCheck(systemd) },
    { name: "docker", ...dockerCheck(version, away) },
    { name: "network", ...networkCheck(network) },
    { name: "disk", ...diskCheck(root, space) },
    { name: "secrets", ...secretsCheck(config.runtimeDir, onTmpfs) },
    { name: "proxy", ...proxyCheck(config.proxies.https?.url ?? null, engineUsesProxy) },
    { name: "platform", ...platformCheck(platform) },
    { name: "clock", ...clockCheck(platform) },
    { name: "gpu", ...gpuCheck(gpus) },
  ];
}

/** Read-only. @returns why the rules for workload networks cannot be installed, or "". */
async function tryRules(runtime: DoctorDeps["runtime"]): Promise<string> {
  const owner = { installationId: "", nodeId: "doctor" };
  const script = "iptables -w 10 -t mangle -S PREROUTING && iptables-restore --version";
  return runtime.changeNetwork(owner, script).then(() => "", reasonOf);
}

/** Of the folder, or of its nearest existing parent. */
async function isInMemory(folder: string): Promise<boolean | null> {
  try {
    return IN_MEMORY.has((await statfs(folder)).type);
  } catch {
    return folder === dirname(folder) ? null : isInMemory(dirname(folder));
  }
}

async function askPlatform(deps: DoctorDeps): Promise<PlatformReading | string | null> {
  const { http, clock } = deps;
  const url = deps.platformUrl ?? (await knownPlatform(deps.config));
  if (url === null) return null;
  try {
    const before = clock.now();
    const { status, headers } = await http({ method: "GET", url: urlBelow(url, "/healthz"), timeoutMs: ANSWER_MS });
    const told = Date.parse(headers.date ?? "");
    // `Date` has a resolution of one second and was set between request and response.
    const skewMs = Number.isNaN(told) ? null : (before + clock.now()) / 2 - (told + 500);
    return { url, status, skewMs };
  } catch (error) {
    return `cannot reach ${url}: ${reasonOf(error)}`;
  }
}

async function knownPlatform({ stateDir, bootstrapTokenFile }: DoctorDeps["config"]): Promise<string | null> {
  const text = bootstrapTokenFile === null ? null : await diskFiles.read(bootstrapTokenFile);
  const token = text === null ? null : parseBootstrapToken(text.trim());
  if (token !== null) return token.url;
  const { value } = await new IdentityStore(diskFiles, stateDir).load();
  return value?.platformUrl ?? null;
}

const MARKS: Readonly<Record<Check["level"], string>> = { ok: "ok", warning: "warn", problem: "FAIL", skipped: "skip" };

export function doctorText(checks: readonly Check[]): string {
  const problems = checks.filter(({ level }) => level === "problem").length;
  const end =
    problems === 0 ? "this machine can run the daemon" : `${problems} of these must be fixed before the daemon can run`;
  const lines = checks.map(({ name, level, message }) => `${MARKS[level].padEnd(5)} ${name.padEnd(13)} ${message}`);
  return [...lines, end].join("\n");
}

export function isWell(checks: readonly Check[]): boolean {
  return checks.every(({ level }) => level !== "problem");
}
