import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Docker from "dockerode";

export const DOCKER_SOCKET = "/var/run/docker.sock";
const BUSYBOX = "/bin/busybox";

/** Why tests on a real container engine cannot run here, or null. */
export async function whyNoDocker(): Promise<string | null> {
  if (!existsSync(BUSYBOX)) return `${BUSYBOX} is missing (Debian: busybox-static)`;
  try {
    await new Docker({ socketPath: DOCKER_SOCKET }).ping();
    return null;
  } catch {
    return `no container engine answers on ${DOCKER_SOCKET}`;
  }
}

/** A test's corner of the real engine: a tiny image of its own, and the removal of all that carries its node label. */
export interface DockerCorner {
  readonly docker: Docker;
  /** Serves /www over HTTP on port 8080 with busybox. */
  readonly image: string;
  close(): Promise<void>;
}

/** @param user who the image runs as: one whom its own `/etc/passwd` gives the number 1234; root where it is left out */
export async function dockerCorner(name: string, user?: string): Promise<DockerCorner> {
  const docker = new Docker({ socketPath: DOCKER_SOCKET });
  // Its own name: two test runs may share the engine.
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
  // A first process ignores SIGTERM unless it says otherwise, and every stop would take its whole grace.
  const script = "trap 'exit 0' TERM; echo output of busybox; /bin/busybox httpd -f -p 8080 -h /www & wait";
  const changes = [`ENTRYPOINT ["/bin/busybox", "sh", "-c"]`, `CMD ["${script}"]`];
  if (user !== undefined) changes.push(`USER ${user}`);
  const stream = await docker.importImage(tar, { repo: image.split(":")[0], tag: image.split(":")[1], changes });
  await new Promise<void>((resolve, reject) => {
    docker.modem.followProgress(stream, (error) => (error ? reject(error) : resolve()));
  });
  await rm(folder, { recursive: true });
}

/** `host` unset, so that an environment's DOCKER_HOST leads nowhere else. */
export function dockerAt(socketPath: string): Docker {
  return new Docker({ socketPath, host: undefined, protocol: "http" });
}

/** Removes every container and volume of one node. */
export async function removeAllOf(docker: Docker, nodeId: string): Promise<void> {
  const filters = { label: [`dev.fairlead.node=${nodeId}`] };
  for (const { Id } of await docker.listContainers({ all: true, filters })) {
    await docker.getContainer(Id).remove({ force: true, v: true });
  }
  const { Volumes } = await docker.listVolumes({ filters });
  for (const { Name } of Volumes) await docker.getVolume(Name).remove();
}
