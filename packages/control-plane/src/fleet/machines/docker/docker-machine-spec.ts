import { TAR_END, tarHeader, tarPadding } from "../../../installation/backup/tar.ts";

/** Container spec of the `docker` provider: Debian with systemd as PID 1, using the host's engine. Pure. */

/** Not the daemon's labels (`dev.fairlead.installation`, …), so that a daemon never treats a machine as its workload. */
export const MACHINE_LABELS = {
  request: "dev.fairlead.machine",
  installation: "dev.fairlead.machine.installation",
} as const;

/** Shared mounts for LoadCredential and writable cgroups. Uses the host's engine. systemd 257 needs an option for cgroups v1. */
const BOOT = `set -e
mount --make-rshared /
while read -r _ point kind _; do
  case $kind in cgroup | cgroup2) mount -o remount,bind,rw "$point" ;; esac
done </proc/mounts
for unit in docker.service docker.socket containerd.service; do ln -sf /dev/null "/etc/systemd/system/$unit"; done
exec /lib/systemd/systemd SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1`;

const ENGINE_SOCKET = "/var/run/docker.sock";

export interface MachineSpec {
  readonly name: string;
  readonly image: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The host's engine. */
  readonly engineSocket: string;
  /** Decrypted secrets, at the same path inside and outside, because the host's engine mounts them into workloads. */
  readonly secrets: { readonly volume: string; readonly path: string };
}

/** The body of `POST /containers/create`. */
export function machineContainer(spec: MachineSpec): object {
  const { name, image, labels, engineSocket, secrets } = spec;
  return {
    Image: image,
    Hostname: name,
    Entrypoint: ["/bin/sh", "-c", BOOT],
    Env: ["container=docker"],
    Labels: labels,
    StopSignal: "SIGRTMIN+3",
    HostConfig: {
      // Ports published on the host's loopback are on the daemon's loopback too.
      NetworkMode: "host",
      CgroupnsMode: "private",
      // Not privileged: systemd only needs to mount.
      CapAdd: ["SYS_ADMIN"],
      SecurityOpt: ["seccomp=unconfined", "apparmor=unconfined"],
      Tmpfs: { "/run": "exec,mode=755", "/run/lock": "", "/tmp": "" },
      Binds: [`${engineSocket}:${ENGINE_SOCKET}`, `${secrets.volume}:${secrets.path}`],
      RestartPolicy: { Name: "unless-stopped" },
    },
  };
}

/** The body of `POST /volumes/create`: a tmpfs that only root may enter. */
export function secretsVolume(spec: Pick<MachineSpec, "labels" | "secrets">): object {
  const options = { type: "tmpfs", device: "tmpfs", o: "mode=0700" };
  return { Name: spec.secrets.volume, Driver: "local", DriverOpts: options, Labels: spec.labels };
}

const USER_DATA = "var/lib/fairlead-machine/user-data";

/** Runs once in the machine's life, like cloud-init, even if it fails. */
const USER_DATA_UNIT = `[Unit]
Description=Run the user data of this machine at its first start
Wants=network-online.target
After=network-online.target
ConditionPathExists=/${USER_DATA}

[Service]
Type=exec
ExecStartPre=/bin/mv /${USER_DATA} /run/fairlead-user-data
ExecStart=/bin/sh /run/fairlead-user-data
ExecStopPost=/bin/rm -f /run/fairlead-user-data
`;

const WANTED = "[Unit]\nWants=fairlead-user-data.service\n";

/** The machine's files, as an archive for its root. @param seconds now, Unix seconds. */
export function machineFiles(userData: string, secretsPath: string, seconds: number): Buffer {
  const secrets = `[Service]\nEnvironment=FAIRLEAD_DAEMON_RUNTIME_DIR=${secretsPath}\nReadWritePaths=${secretsPath}\n`;
  const files: Readonly<Record<string, string>> = {
    [USER_DATA]: userData,
    "etc/systemd/system/fairlead-user-data.service": USER_DATA_UNIT,
    "etc/systemd/system/multi-user.target.d/user-data.conf": WANTED,
    "etc/systemd/system/fairlead-daemon.service.d/secrets.conf": secrets,
  };
  const parts = Object.entries(files).flatMap(([name, content]) => {
    const bytes = Buffer.from(content);
    return [tarHeader({ name, bytes: bytes.length }, seconds), bytes, Buffer.alloc(tarPadding(bytes.length))];
  });
  return Buffer.concat([...parts, TAR_END]);
}

/** Stops the daemon and removes its workloads from the host's engine. Exit code 2: no daemon was enrolled. */
export const REMOVE_WORKLOADS = `command -v fairlead-daemon >/dev/null || exit 0
systemctl stop fairlead-user-data fairlead-daemon
fairlead-daemon purge --state-dir /var/lib/fairlead-daemon || [ $? = 2 ]`;
