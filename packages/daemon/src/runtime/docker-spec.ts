import type { Gpus } from "@fairlead/protocol/engine-config";
import { SECRETS_MOUNT_PATH } from "@fairlead/protocol/secrets";
import { LOCAL_HOST, WORKLOAD_TYPE_AGENT, type WorkloadSpec } from "@fairlead/protocol/workload";
import type { ContainerCreateOptions, MountSettings } from "dockerode";
import type { ContainerPlan, ContainerSecrets } from "./container-runtime.ts";
import { LABELS, ownershipLabels } from "./ownership.ts";

/** A container plan as the body of Docker's create call. Pure. */

const DEFAULT_PIDS = 4096;
const MEGABYTE = 1024 * 1024;

export function containerBody(plan: ContainerPlan): ContainerCreateOptions {
  const { spec, owner, secrets } = plan;
  return {
    Image: spec.image,
    // Values may hold newlines: they travel as an array, never as an env file or a shell line (kamal#1467).
    Env: Object.entries({ ...spec.env, ...secrets?.env }).map(([name, value]) => `${name}=${value}`),
    ...(spec.command.length > 0 ? { Entrypoint: spec.command } : {}),
    ...(spec.args.length > 0 ? { Cmd: spec.args } : {}),
    Labels: ownershipLabels(owner, spec, plan.generation),
    ExposedPorts: { [`${spec.port}/tcp`]: {} },
    HostConfig: hostConfig(plan),
  };
}

function hostConfig(plan: ContainerPlan): NonNullable<ContainerCreateOptions["HostConfig"]> {
  const { spec, secrets } = plan;
  const { cpus, memoryMb, shmMb, pids, gpus } = spec.resources;
  const memory = memoryMb === undefined ? {} : { Memory: memoryMb * MEGABYTE, MemorySwap: memoryMb * MEGABYTE };
  return {
    // No host port: Docker picks a free one at every start, so a stale proxy can never hold ours (moby#20486).
    PortBindings: { [`${spec.port}/tcp`]: [{ HostIp: "127.0.0.1", HostPort: "" }] },
    // Without limits one container can fill the disk with its log (docker/for-linux#985).
    LogConfig: { Type: "json-file", Config: { "max-size": "10m", "max-file": "3" } },
    // The daemon restarts, so that backoff and reports have one owner.
    RestartPolicy: { Name: "no" },
    CapDrop: ["ALL"],
    SecurityOpt: ["no-new-privileges"],
    ReadonlyRootfs: true,
    // Engines compile kernels under /tmp and run them; Docker's default would forbid that.
    Tmpfs: { "/tmp": "rw,exec,nosuid,nodev,mode=1777" },
    // Docker puts its bridge's address there, where the daemon forwards these ports.
    ...(spec.localPorts?.length ? { ExtraHosts: [`${LOCAL_HOST}:host-gateway`] } : {}),
    PidsLimit: pids ?? DEFAULT_PIDS,
    ...(cpus === undefined ? {} : { NanoCpus: Math.round(cpus * 1e9) }),
    ...memory,
    ...(shmMb === undefined ? {} : { ShmSize: shmMb * MEGABYTE }),
    ...(gpus === undefined || gpus === 0 ? {} : { DeviceRequests: [deviceRequest(gpus)] }),
    Mounts: [...volumeMounts(plan), ...secretMounts(secrets)],
  };
}

function volumeMounts({ spec, projectId, owner }: ContainerPlan): MountSettings[] {
  return spec.volumes.map((volume) => ({
    Type: "volume",
    Source: volumeName(projectId, spec, volume.name),
    Target: volume.mountPath,
    VolumeOptions: {
      NoCopy: false,
      Labels: { [LABELS.installation]: owner.installationId, [LABELS.node]: owner.nodeId },
      DriverConfig: { Name: "local", Options: {} },
    },
  }));
}

/** The folder, never a file in it: a file that is replaced would stay the old one inside the container. */
function secretMounts(secrets: ContainerSecrets | null): MountSettings[] {
  if (secrets === null || secrets.folder === null) return [];
  return [{ Type: "bind", Source: secrets.folder, Target: SECRETS_MOUNT_PATH, ReadOnly: true }];
}

/** What `docker run --gpus` asks for. Docker takes either a count or ids; -1 is all of them. */
function deviceRequest(gpus: Gpus): object {
  const which = Array.isArray(gpus) ? { DeviceIDs: gpus } : { Count: gpus === "all" ? -1 : gpus };
  return { Driver: "nvidia", ...which, Capabilities: [["gpu"]] };
}

/** A named volume is shared by the engines of one project only; each agent has its own. */
function volumeName(projectId: string, { workloadType, name: owner }: WorkloadSpec, name: string): string {
  const scope = workloadType === WORKLOAD_TYPE_AGENT ? `${projectId}-${owner}` : projectId;
  return `fairlead-${scope}-${name}`;
}
