import type { DaemonConfig } from "./process/config.ts";
import { DaemonStartError } from "./process/start-error.ts";
import type { ContainerRuntime, ContainerState, Owner } from "./runtime/container-runtime.ts";
import { DesiredStore } from "./state/desired-store.ts";
import { diskFiles } from "./state/files.ts";
import { IdentityStore } from "./state/identity-store.ts";
import { lockStateFolder } from "./state/state-lock.ts";

export interface DaemonStatus {
  readonly running: boolean;
  readonly nodeId: string | null;
  readonly platformUrl: string | null;
  readonly enrolled: boolean;
  readonly generation: number | null;
  readonly workloads: readonly string[];
  /** The node's containers; null if the container engine does not respond. */
  readonly containers: readonly StatusContainer[] | null;
}

export interface StatusContainer {
  readonly name: string;
  readonly state: ContainerState;
  readonly image: string;
  readonly startedAt: string | null;
}

/** Reads the status from a state folder and checks whether its daemon is running. */
export async function readStatus(
  { stateDir }: Pick<DaemonConfig, "stateDir">,
  runtime: Pick<ContainerRuntime, "list">,
): Promise<DaemonStatus> {
  const { value: identity } = await new IdentityStore(diskFiles, stateDir).load();
  const desired = new DesiredStore(diskFiles, { folder: stateDir, nodeId: identity?.nodeId ?? "" });
  await desired.load();
  const state = desired.current();
  return {
    running: await isHeld(stateDir),
    nodeId: identity?.nodeId ?? null,
    platformUrl: identity?.platformUrl ?? null,
    enrolled: (identity?.enrolled ?? null) !== null,
    generation: state?.generation ?? null,
    workloads: state?.workloads.map((spec) => spec.name) ?? [],
    containers: identity?.enrolled ? await containersOf(runtime, { ...identity.enrolled, ...identity }) : [],
  };
}

async function containersOf(runtime: Pick<ContainerRuntime, "list">, owner: Owner): Promise<StatusContainer[] | null> {
  try {
    const containers = await runtime.list({ installationId: owner.installationId, nodeId: owner.nodeId });
    return containers.map(({ name, state, image, startedAt }) => ({ name, state, image, startedAt }));
  } catch {
    return null;
  }
}

async function isHeld(stateDir: string): Promise<boolean> {
  try {
    await (await lockStateFolder(stateDir)).release();
    return false;
  } catch (error) {
    if (error instanceof DaemonStartError) return true;
    // The folder does not exist.
    return false;
  }
}

export function statusText(status: DaemonStatus): string {
  const generation = status.generation === null ? "none" : `generation ${status.generation}`;
  return [
    `daemon     ${status.running ? "running" : "not running"}`,
    `node       ${status.nodeId ?? "none"}${status.enrolled ? "" : " (not enrolled)"}`,
    `platform   ${status.platformUrl ?? "none"}`,
    `desired    ${generation}`,
    `workloads  ${status.workloads.join(", ") || "none"}`,
    ...containerLines(status.containers),
  ].join("\n");
}

function containerLines(containers: DaemonStatus["containers"]): string[] {
  if (containers === null) return ["cannot list containers: Docker does not respond"];
  return containers.map(({ name, state, startedAt }) => `container  ${name} ${state}, started ${startedAt ?? "never"}`);
}
