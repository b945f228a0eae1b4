import type { Gpus } from "@fairlead/protocol/engine-config";
import { SECRETS_MOUNT_PATH } from "@fairlead/protocol/secrets";
import { WORKLOAD_TYPE_AGENT, type WorkloadSpec } from "@fairlead/protocol/workload";
import type { ContainerCreateOptions, MountSettings } from "dockerode";
import type { ContainerPlan, ContainerSecrets } from "../container-runtime.ts";
import { LABELS, networkName, ownershipLabels } from "../ownership.ts";

/** Builds the body of Docker's create call. Pure. */

const DEFAULT_PIDS = 4096;
/** Without a size, it could use half of the machine's memory. */
const DEFAULT_TMP_MB = 1024;
/** An address without a name server. Otherwise Docker would resolve names through the machine's network. */
const NO_RESOLVER = "127.0.0.1";
const MEGABYTE = 1024 * 1024;

/** @param gateway this machine's address on the workload's network. */
export function containerBody(plan: ContainerPlan, gateway: string): ContainerCreateOptions {
  const { spec, owner, secrets } = plan;
  return {
    Image: spec.image,
    // Values may contain newlines, so no env file or shell line (kamal#1467).
    Env: Object.entries({ ...spec.env, ...secrets?.env }).map(([name, value]) => `${name}=${value}`),
    ...(spec.command.length > 0 ? { Entrypoint: spec.command } : {}),
    ...(spec.args.length > 0 ? { Cmd: spec.args } : {}),
    Labels: ownershipLabels(owner, spec, plan.generation),
    ExposedPorts: { [`${spec.port}/tcp`]: {} },
    HostConfig: hostConfig(plan, gateway),
  };
}

function hostConfig(plan: ContainerPlan, gateway: string): NonNullable<ContainerCreateOptions["HostConfig"]> {
  const { spec, owner, secrets } = plan;
  const { cpus, memoryMb, shmMb, tmpMb, pids, gpus } = spec.resources;
  const { internet, platform } = spec.network;
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
    // Programs not designed to run as PID 1 leave zombies behind until the process limit is reached.
    Init: spec.init ?? true,
    ReadonlyRootfs: true,
    // Engines compile and execute kernels in /tmp, which Docker's default forbids.
    Tmpfs: { "/tmp": `rw,exec,nosuid,nodev,mode=1777,size=${tmpMb ?? DEFAULT_TMP_MB}m` },
    NetworkMode: networkName(owner.nodeId, spec),
    ...(internet ? {} : { Dns: [NO_RESOLVER] }),
    // The daemon forwards from there.
    ...(platform?.forwarded ? { ExtraHosts: [`${platform.name}:${gateway}`] } : {}),
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

/** Mount the folder: a mounted file would not change when it is replaced. */
function secretMounts(secrets: ContainerSecrets | null): MountSettings[] {
  if (secrets === null || secrets.folder === null) return [];
  return [{ Type: "bind", Source: secrets.folder, Target: SECRETS_MOUNT_PATH, ReadOnly: true }];
}

/** Like `docker run --gpus`: either a count or IDs; -1 means all. */
function deviceRequest(gpus: Gpus): object {
  const which = Array.isArray(gpus) ? { DeviceIDs: gpus } : { Count: gpus === "all" ? -1 : gpus };
  return { Driver: "nvidia", ...which, Capabilities: [["gpu"]] };
}

/** Named volumes are shared among the engines of a project; agents have their own. */
function volumeName(projectId: string, { workloadType, name: owner }: WorkloadSpec, name: string): string {
  const scope = workloadType === WORKLOAD_TYPE_AGENT ? `${projectId}-${owner}` : projectId;
  return `fairlead-${scope}-${name}`;
}
