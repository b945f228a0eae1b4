import { TAR_END, tarHeader, tarPadding } from "../backup/tar.ts";

/** How a machine of the `docker` provider is made: a Debian container in which systemd is PID 1, beside the engine that it uses. Pure. */

/** Not the daemon's own labels (`dev.fairlead.installation`, …): a daemon never takes a machine for one of its workloads. */
export const MACHINE_LABELS = {
  request: "dev.fairlead.machine",
  installation: "dev.fairlead.machine.installation",
} as const;

/**
 * Shared mounts for LoadCredential; control groups that systemd can write. The engine is the host's: one inside would take its socket.
 * systemd 257 runs on control groups of the first kind only where it is told to.
 */
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
  /** The host's, which the machine's daemon uses. */
  readonly engineSocket: string;
  /** Where opened secrets rest, at the same path inside and outside: the host's engine mounts them into workloads. */
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
      // What the engine publishes on the host's loopback is loopback for the daemon too.
      NetworkMode: "host",
      CgroupnsMode: "private",
      // Not privileged: systemd needs to mount, and nothing else.
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

/** Runs once in the machine's life, as cloud-init does: whether it succeeds or not. */
const USER_DATA_UNIT = `[Unit]
Description=What this machine was told to do at its first start
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

/** The files that make a machine of the image, as an archive for its root. @param seconds now, Unix seconds. */
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

/** Stops the daemon, and removes what it runs on the host's engine. A machine on which none was enrolled (2) has nothing there. */
export const REMOVE_WORKLOADS = `command -v fairlead-daemon >/dev/null || exit 0
systemctl stop fairlead-user-data fairlead-daemon
fairlead-daemon purge --state-dir /var/lib/fairlead-daemon || [ $? = 2 ]`;
