import { clockFinding } from "../host/condition-rules.ts";
import { type DiskSpace, roomProblem, sizeText } from "../host/disk-rules.ts";
import type { GpuReading } from "../host/gpus.ts";

/** What the doctor's readings of this machine mean, in one line each. Pure. */

export type Level = "ok" | "warning" | "problem" | "skipped";

export interface Check {
  readonly name: string;
  /** A `problem` keeps the daemon from its work; a `warning` does not. */
  readonly level: Level;
  readonly message: string;
}

type Judged = Omit<Check, "name">;

const ok = (message: string): Judged => ({ level: "ok", message });
const warning = (message: string): Judged => ({ level: "warning", message });
const problem = (message: string): Judged => ({ level: "problem", message });
const skipped = (message: string): Judged => ({ level: "skipped", message });

const ARCHITECTURES = new Set(["x64", "arm64"]);
/** The oldest engine that this release is tested with. */
const OLDEST_DOCKER = [20, 10] as const;

export function systemCheck(platform: string, name: string): Judged {
  return platform === "linux" ? ok(name) : problem(`${name}: the daemon runs on Linux`);
}

export function architectureCheck(architecture: string): Judged {
  if (ARCHITECTURES.has(architecture)) return ok(architecture);
  return warning(`${architecture}: images of engines are seldom made for it`);
}

export function systemdCheck(runs: boolean): Judged {
  return runs
    ? ok("runs here")
    : warning("does not run here: something else must start the daemon, and start it again");
}

/** @param reason why the container engine cannot be asked, or null. */
export function dockerCheck(version: string, reason: string | null): Judged {
  if (reason !== null) {
    const denied = /EACCES|permission denied/i.test(reason);
    const advice = denied ? "run as root, or as a member of the group docker" : "install Docker, or start it";
    return problem(`cannot be asked: ${reason}; ${advice}`);
  }
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const old = major < OLDEST_DOCKER[0] || (major === OLDEST_DOCKER[0] && minor < OLDEST_DOCKER[1]);
  return old
    ? problem(`version ${version} is too old: ${OLDEST_DOCKER.join(".")} or newer is needed`)
    : ok(`version ${version}`);
}

export function diskCheck(folder: string, space: DiskSpace | null): Judged {
  if (space === null) return warning(`the space in ${folder} cannot be read`);
  const lack = roomProblem(space, 0);
  return lack === null ? ok(`${sizeText(space.freeBytes)} free in ${folder}`) : problem(`${folder}: ${lack}`);
}

/** @param onTmpfs null where that cannot be told. */
export function secretsCheck(folder: string, onTmpfs: boolean | null): Judged {
  if (onTmpfs === null) return warning(`the file system of ${folder} cannot be told`);
  return onTmpfs
    ? ok(`${folder} is in memory`)
    : warning(`${folder} is on a disk: opened secrets would rest there; use a tmpfs`);
}

export interface PlatformReading {
  readonly url: string;
  readonly status: number;
  /** By which this machine's clock is ahead, in milliseconds; null where the answer told no time. */
  readonly skewMs: number | null;
}

/** @param reading null where no platform is known, or why it cannot be reached. */
export function platformCheck(reading: PlatformReading | string | null): Judged {
  if (reading === null) return skipped("no platform is known yet: give --platform-url, or a bootstrap token's file");
  if (typeof reading === "string") return problem(reading);
  const { url, status } = reading;
  if (status === 200) return ok(`${url} answers`);
  return problem(`${url} answers ${status}: is it a Fairlead platform host, and is a proxy in between?`);
}

export function clockCheck(reading: PlatformReading | string | null): Judged {
  if (reading === null || typeof reading === "string" || reading.skewMs === null)
    return skipped("can be judged only by a platform that answers");
  const { status, message } = clockFinding(reading.skewMs);
  return status === "problem" ? problem(`${message}: let NTP set it`) : ok("agrees with the platform's");
}

export function gpuCheck(reading: GpuReading): Judged {
  if (reading.state === "absent") return ok("none (there is no nvidia-smi)");
  if (reading.state === "broken") return problem(`nvidia-smi failed: ${reading.reason}`);
  const names = reading.gpus.map(({ name, memoryMb }) => `${name}, ${memoryMb} MiB`);
  return names.length === 0 ? warning("nvidia-smi is there, but shows no GPU") : ok(names.join("; "));
}
