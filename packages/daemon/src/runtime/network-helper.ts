import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import type Docker from "dockerode";
import { type Owner, RuntimeError } from "./container-runtime.ts";
import { textOfLogs } from "./docker/docker-answers.ts";

/**
 * Runs a short-lived container in the host network with permission to change it. The daemon has no such permission and may
 * itself run in a container; Docker runs this one where its bridges are. Its files are links into the host's, so that
 * it uses the same packet filter as Docker.
 */

export const HELPER_IMAGE = "fairlead/network-helper:1";
const LABEL = "dev.fairlead.helper";

const FOLDERS = ["dev", "etc", "host", "proc", "run", "sys"];
const LINKS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(["bin", "lib", "lib64", "nix", "sbin", "usr"].map((name) => [name, `host/${name}`])),
  "etc/alternatives": "../host/etc/alternatives",
  "etc/ld.so.cache": "../host/etc/ld.so.cache",
};

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin";

/** @throws RuntimeError `rejected` with the script's output if it fails. */
export async function runHelper(
  docker: Docker,
  { owner, script }: { readonly owner: Owner; readonly script: string },
  abortSignal: AbortSignal,
): Promise<string> {
  await ensureImage(docker, abortSignal);
  const name = `fairlead-${owner.nodeId.slice(-8)}-network-helper`;
  // Left over from a killed daemon.
  await removeHelper(docker, name);
  const container = await docker.createContainer({ _query: { name }, _body: helperBody(script), abortSignal } as never);
  try {
    await container.start({ abortSignal });
    const { StatusCode } = (await container.wait({ abortSignal })) as { StatusCode: number };
    const logs = { stdout: true, stderr: true, follow: false as const, abortSignal };
    const output = textOfLogs(await container.logs(logs)).trim();
    if (StatusCode !== 0) throw new RuntimeError("rejected", output || `exited with code ${StatusCode}`);
    return output;
  } finally {
    await removeHelper(docker, name);
  }
}

function helperBody(script: string): Docker.ContainerCreateOptions {
  return {
    Image: HELPER_IMAGE,
    Entrypoint: ["/bin/sh", "-c", script],
    Env: [`PATH=${PATH}`],
    User: "0",
    Labels: { [LABEL]: "network" },
    HostConfig: {
      NetworkMode: "host",
      UsernsMode: "host",
      CapDrop: ["ALL"],
      CapAdd: ["NET_ADMIN", "NET_RAW"],
      // SELinux labels would block access to the host's programs.
      SecurityOpt: ["no-new-privileges", "label=disable"],
      ReadonlyRootfs: true,
      PidsLimit: 64,
      LogConfig: { Type: "json-file", Config: { "max-size": "64k", "max-file": "1" } },
      Mounts: [
        { Type: "bind", Source: "/", Target: "/host", ReadOnly: true },
        // For the packet filter's lock.
        { Type: "bind", Source: "/run", Target: "/run" },
      ],
    },
  };
}

async function removeHelper(docker: Docker, name: string): Promise<void> {
  await docker
    .getContainer(name)
    .remove({ force: true, v: true })
    .catch((error: { statusCode?: number }) => {
      if (error.statusCode !== 404) throw error;
    });
}

async function ensureImage(docker: Docker, abortSignal: AbortSignal): Promise<void> {
  const present = await docker
    .getImage(HELPER_IMAGE)
    .inspect()
    .then(
      () => true,
      (error: { statusCode?: number }) => {
        if (error.statusCode !== 404) throw error;
        return false;
      },
    );
  if (present) return;
  const [repo, tag] = HELPER_IMAGE.split(":");
  const answer = await docker.importImage(Readable.from([imageTar()]), { repo, tag, abortSignal });
  await buffer(answer);
}

export async function removeHelperImage(docker: Docker): Promise<void> {
  await docker
    .getImage(HELPER_IMAGE)
    .remove()
    .catch((error: { statusCode?: number }) => {
      // Other daemons on this machine may use it.
      if (error.statusCode !== 404 && error.statusCode !== 409) throw error;
    });
}

/** A tar file with folders and links only. */
export function imageTar(): Buffer {
  const folders = FOLDERS.map((name) => tarHeader(`${name}/`, "5", ""));
  const links = Object.entries(LINKS).map(([name, target]) => tarHeader(name, "2", target));
  return Buffer.concat([...folders, ...links, Buffer.alloc(1024)]);
}

function tarHeader(name: string, type: "2" | "5", target: string): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write("0000755\0", 100);
  for (const at of [108, 116]) header.write("0000000\0", at);
  for (const at of [124, 136]) header.write("00000000000\0", at);
  header.write("        ", 148);
  header.write(type, 156);
  header.write(target, 157);
  header.write("ustar\x0000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}
