import { clockFinding } from "../host/condition-rules.ts";
import { type DiskSpace, roomProblem, sizeText } from "../host/disk-rules.ts";
import type { GpuReading } from "../host/gpus.ts";

/** Turns the doctor's readings into one-line results. Pure. */

export type Level = "ok" | "warning" | "problem" | "skipped";

export interface Check {
  readonly name: string;
  /** A `problem` prevents the daemon from working; a `warning` does not. */
  readonly level: Level;
  readonly message: string;
}

type Judged = Omit<Check, "name">;

const ok = (message: string): Judged => ({ level: "ok", message });
const warning = (message: string): Judged => ({ level: "warning", message });
const problem = (message: string): Judged => ({ level: "problem", message });
const skipped = (message: string): Judged => ({ level: "skipped", message });

const ARCHITECTURES = new Set(["x64", "arm64"]);
/** The oldest Docker version that this release is tested with. */
const OLDEST_DOCKER = [20, 10] as const;

export function systemCheck(platform: string, name: string): Judged {
  return platform === "linux" ? ok(name) : problem(`${name}: the daemon requires Linux`);
}

export function architectureCheck(architecture: string): Judged {
  if (ARCHITECTURES.has(architecture)) return ok(architecture);
  return warning(`${architecture}: few engine images are available for it`);
}

export function systemdCheck(runs: boolean): Judged {
  return runs ? ok("running") : warning("not running: something else must start and restart the daemon");
}

/** @param reason why the container engine does not respond, or null. */
export function dockerCheck(version: string, reason: string | null): Judged {
  if (reason !== null) {
    const denied = /EACCES|permission denied/i.test(reason);
    const advice = denied ? "run as root or as a member of the group docker" : "install Docker or start it";
    return problem(`cannot connect: ${reason}; ${advice}`);
  }
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const old = major < OLDEST_DOCKER[0] || (major === OLDEST_DOCKER[0] && minor < OLDEST_DOCKER[1]);
  return old
    ? problem(`version ${version} is too old: ${OLDEST_DOCKER.join(".")} or newer is needed`)
    : ok(`version ${version}`);
}

/** @param reason why the rules cannot be installed, or ""; null if Docker does not respond. */
export function networkCheck(reason: string | null): Judged {
  if (reason === null) return skipped("requires Docker");
  if (reason === "") return ok("rules for workload networks can be installed");
  return problem(`cannot install rules for workload networks: ${reason}; install iptables`);
}

export function diskCheck(folder: string, space: DiskSpace | null): Judged {
  if (space === null) return warning(`cannot read the free space in ${folder}`);
  const lack = roomProblem(space, 0);
  return lack === null ? ok(`${sizeText(space.freeBytes)} free in ${folder}`) : problem(`${folder}: ${lack}`);
}

/** @param onTmpfs null if unknown. */
export function secretsCheck(folder: string, onTmpfs: boolean | null): Judged {
  if (onTmpfs === null) return warning(`cannot determine the file system of ${folder}`);
  return onTmpfs
    ? ok(`${folder} is in memory`)
    : warning(`${folder} is on disk: decrypted secrets would be stored there; use a tmpfs`);
}

export interface PlatformReading {
  readonly url: string;
  readonly status: number;
  /** Milliseconds that this machine's clock is ahead; null if the response had no date. */
  readonly skewMs: number | null;
}

/** @param reading null if no platform is known; a string if it cannot be reached. */
export function platformCheck(reading: PlatformReading | string | null): Judged {
  if (reading === null) return skipped("no platform known yet: set --platform-url or --bootstrap-token-file");
  if (typeof reading === "string") return problem(reading);
  const { url, status } = reading;
  if (status === 200) return ok(`${url} is reachable`);
  return problem(
    `${url} returned ${status}: check that it is a Fairlead platform host and whether a proxy is in between`,
  );
}

/**
 * @param proxy the daemon's proxy for https URLs, or null.
 * @param engineUses whether Docker pulls images through a proxy; null if it does not respond.
 */
export function proxyCheck(proxy: string | null, engineUses: boolean | null): Judged {
  if (proxy === null) return ok(engineUses === true ? "none for the daemon; Docker uses one" : "none");
  if (engineUses === false)
    return warning(
      `the daemon uses ${proxy}, but Docker does not use a proxy: configure it for Docker as well (docs/daemon.md)`,
    );
  return ok(engineUses === null ? proxy : `${proxy}; Docker uses one too`);
}

export function clockCheck(reading: PlatformReading | string | null): Judged {
  if (reading === null || typeof reading === "string" || reading.skewMs === null)
    return skipped("requires a reachable platform");
  const { status, message } = clockFinding(reading.skewMs);
  return status === "problem" ? problem(`${message}: synchronize it with NTP`) : ok("in sync with the platform's");
}

export function gpuCheck(reading: GpuReading): Judged {
  if (reading.state === "absent") return ok("none (nvidia-smi is not installed)");
  if (reading.state === "broken") return problem(`nvidia-smi failed: ${reading.reason}`);
  const names = reading.gpus.map(({ name, memoryMb }) => `${name}, ${memoryMb} MiB`);
  return names.length === 0 ? warning("nvidia-smi is installed but lists no GPU") : ok(names.join("; "));
}
