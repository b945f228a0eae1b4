import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Docker from "dockerode";

export const DOCKER_SOCKET = "/var/run/docker.sock";
const BUSYBOX = "/bin/busybox";

/** Why tests with a real container engine are skipped, or null. */
export async function whyNoDocker(): Promise<string | null> {
  if (!existsSync(BUSYBOX)) return `${BUSYBOX} is missing (Debian: busybox-static)`;
  try {
    await new Docker({ socketPath: DOCKER_SOCKET }).ping();
    return null;
  } catch {
    return `no container engine answers on ${DOCKER_SOCKET}`;
  }
}

/** A test's share of the real engine: its own tiny image, and clean-up of everything with its node label. */
export interface DockerCorner {
  readonly docker: Docker;
  /** Serves /www over HTTP on port 8080 with busybox. */
  readonly image: string;
  close(): Promise<void>;
}

/** @param user name of the image's user, with UID 1234 in its `/etc/passwd`; default root */
export async function dockerCorner(name: string, user?: string): Promise<DockerCorner> {
  const docker = new Docker({ socketPath: DOCKER_SOCKET });
  // A unique name, because several test runs may share the engine.
  const image = `fairlead-test/${name}:${randomBytes(4).toString("hex")}`;
  await importImage(docker, image, user);
  return {
    docker,
    image,
    close: async () => {
      await docker.getImage(image).remove({ force: true });
    },
  };
}

async function importImage(docker: Docker, image: string, user: string | undefined): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "fairlead-image-"));
  const root = join(folder, "root");
  for (const inner of ["bin", "etc", "www/v1", "tmp"]) await mkdir(join(root, inner), { recursive: true });
  await copyFile(BUSYBOX, join(root, "bin/busybox"));
  await writeFile(join(root, "www/health"), "ok\n");
  await writeFile(join(root, "www/version"), JSON.stringify({ version: "9.8.7" }));
  await writeFile(join(root, "www/v1/models"), JSON.stringify({ object: "list", data: [{ id: "tiny" }] }));
  if (user !== undefined) await writeFile(join(root, "etc/passwd"), `root:x:0:0::/:\n${user}:x:1234:1234::/:\n`);
  const tar = join(folder, "root.tar");
  execFileSync("tar", ["-C", root, "-cf", tar, "."]);
  // PID 1 ignores SIGTERM by default, so every stop would take the whole grace period.
  const script = "trap 'exit 0' TERM; echo output of busybox; /bin/busybox httpd -f -p 8080 -h /www & wait";
  const changes = [`ENTRYPOINT ["/bin/busybox", "sh", "-c"]`, `CMD ["${script}"]`];
  if (user !== undefined) changes.push(`USER ${user}`);
  const stream = await docker.importImage(tar, { repo: image.split(":")[0], tag: image.split(":")[1], changes });
  await new Promise<void>((resolve, reject) => {
    docker.modem.followProgress(stream, (error) => (error ? reject(error) : resolve()));
  });
  await rm(folder, { recursive: true });
}

/** `host` stays unset, so that DOCKER_HOST has no effect. */
export function dockerAt(socketPath: string): Docker {
  return new Docker({ socketPath, host: undefined, protocol: "http" });
}

/** Removes all containers, volumes and networks of a node. */
export async function removeAllOf(docker: Docker, nodeId: string): Promise<void> {
  const filters = { label: [`dev.fairlead.node=${nodeId}`] };
  for (const { Id } of await docker.listContainers({ all: true, filters })) {
    await docker.getContainer(Id).remove({ force: true, v: true });
  }
  const { Volumes } = await docker.listVolumes({ filters });
  for (const { Name } of Volumes) await docker.getVolume(Name).remove();
  const networks = await docker.listNetworks({ filters: JSON.stringify(filters) });
  for (const { Id } of networks) await docker.getNetwork(Id).remove();
}
