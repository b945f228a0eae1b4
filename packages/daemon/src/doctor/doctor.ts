import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "@fairlead/protocol/clock";
import { parseBootstrapToken } from "@fairlead/protocol/enrollment";
import type { DaemonConfig } from "../config.ts";
import { readDiskSpace } from "../host/disk.ts";
import { readGpus } from "../host/gpus.ts";
import { readStaticFacts } from "../host/host-facts.ts";
import { runsSystemd } from "../host/systemd.ts";
import type { HttpClient } from "../link/http-client.ts";
import { reasonOf } from "../log.ts";
import type { ContainerRuntime } from "../runtime/container-runtime.ts";
import { diskFiles } from "../state/files.ts";
import { IdentityStore } from "../state/identity-store.ts";
import {
  architectureCheck,
  type Check,
  clockCheck,
  diskCheck,
  dockerCheck,
  gpuCheck,
  type PlatformReading,
  platformCheck,
  secretsCheck,
  systemCheck,
  systemdCheck,
} from "./findings.ts";

export interface DoctorDeps {
  readonly config: Pick<DaemonConfig, "stateDir" | "runtimeDir" | "bootstrapTokenFile">;
  /** Where the platform is; null: what the identity or the bootstrap token says. */
  readonly platformUrl: string | null;
  readonly runtime: Pick<ContainerRuntime, "version">;
  readonly http: HttpClient;
  readonly clock: Clock;
}

const ANSWER_MS = 10_000;
/** `statfs` of Linux names file systems by these numbers. */
const IN_MEMORY = new Set([0x01021994, 0x858458f6]);

/** Looks at everything that a daemon needs of its machine. Changes nothing. */
export async function examine(deps: DoctorDeps): Promise<Check[]> {
  const { config, runtime } = deps;
  const engine = await runtime.version().catch((error: unknown) => reasonOf(error));
  const away = typeof engine === "string" ? engine : null;
  const root = typeof engine === "string" ? config.stateDir : engine.rootFolder;
  const version = typeof engine === "string" ? "" : engine.version;
  const [facts, systemd, space, onTmpfs, platform, gpus] = await Promise.all([
    readStaticFacts(),
    runsSystemd(),
    readDiskSpace(root),
    isInMemory(config.runtimeDir),
    askPlatform(deps),
    readGpus(),
  ]);
  const { operatingSystem, kernel, architecture } = facts;
  return [
    { name: "system", ...systemCheck(process.platform, `${operatingSystem}, kernel ${kernel}`) },
    { name: "architecture", ...architectureCheck(architecture) },
    { name: "systemd", ...systemdCheck(systemd) },
    { name: "docker", ...dockerCheck(version, away) },
    { name: "disk", ...diskCheck(root, space) },
    { name: "secrets", ...secretsCheck(config.runtimeDir, onTmpfs) },
    { name: "platform", ...platformCheck(platform) },
    { name: "clock", ...clockCheck(platform) },
    { name: "gpu", ...gpuCheck(gpus) },
  ];
}

/** Of the folder, or the nearest one above it that is there. */
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
    const { status, headers } = await http({ method: "GET", url: new URL("/healthz", url).href, timeoutMs: ANSWER_MS });
    const told = Date.parse(headers.date ?? "");
    // `Date` has whole seconds, and was written some time between question and answer.
    const skewMs = Number.isNaN(told) ? null : (before + clock.now()) / 2 - (told + 500);
    return { url, status, skewMs };
  } catch (error) {
    return `${url} cannot be reached: ${reasonOf(error)}`;
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
    problems === 0
      ? "this machine can run the daemon"
      : `${problems} of these must be put right before the daemon can work`;
  const lines = checks.map(({ name, level, message }) => `${MARKS[level].padEnd(5)} ${name.padEnd(13)} ${message}`);
  return [...lines, end].join("\n");
}

export function isWell(checks: readonly Check[]): boolean {
  return checks.every(({ level }) => level !== "problem");
}
