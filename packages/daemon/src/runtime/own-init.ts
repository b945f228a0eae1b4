import type { WorkloadSpec } from "@fairlead/protocol/workload";

/** Detects images with their own init process, which usually must be PID 1. Pure. */

const NAMES: ReadonlySet<string> = new Set([
  "catatonit",
  "docker-init",
  "dumb-init",
  "init",
  "my_init",
  "runit",
  "runit-init",
  "s6-svscan",
  "systemd",
  "tini",
  "tini-static",
]);

export interface ImageStart {
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
}

/** @returns the container's first program if it is an init process, else null. */
export function ownInit({ command, args }: Pick<WorkloadSpec, "command" | "args">, image: ImageStart): string | null {
  const entrypoint = command.length > 0 ? command : image.entrypoint;
  const [program = ""] = [...entrypoint, ...(args.length > 0 ? args : image.command)];
  return NAMES.has(program.slice(program.lastIndexOf("/") + 1)) ? program : null;
}
