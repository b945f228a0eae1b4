import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePorts } from "@fairlead/protocol/testing/free-ports";
import type Docker from "dockerode";

const REGISTRY = "/usr/bin/docker-registry";
const HTPASSWD = "/usr/bin/htpasswd";

/** Why tests with a real registry are skipped, or null. */
export function whyNoRegistry(): string | null {
  const missing = [REGISTRY, HTPASSWD].find((path) => !existsSync(path));
  return missing === undefined ? null : `${missing} is missing (Debian: docker-registry, apache2-utils)`;
}

export interface Registry {
  /** `127.0.0.1:port`, which Docker accepts without TLS. */
  readonly host: string;
  /** Pushes a local image to this repository. The name includes the host, because the engine may use another address. @returns its digest. */
  push(docker: Docker, image: string, repo: string): Promise<string>;
  /** Changes the only accepted login, also used for pushes. */
  changeLogin(login: Login): void;
  close(): Promise<void>;
}

export interface Login {
  readonly username: string;
  readonly password: string;
}

/** A registry on its own port that requires this login. */
export async function startRegistry(first: Login): Promise<Registry> {
  let login = first;
  const folder = await mkdtemp(join(tmpdir(), "fairlead-registry-"));
  const port = await freePorts(1);
  const host = `127.0.0.1:${port}`;
  const passwords = join(folder, "htpasswd");
  writeFileSync(passwords, passwordLine(login));
  const config = {
    version: 0.1,
    log: { level: "error" },
    storage: { filesystem: { rootdirectory: join(folder, "data") } },
    http: { addr: host },
    auth: { htpasswd: { realm: "test", path: passwords } },
  };
  // JSON is a subset of YAML.
  await writeFile(join(folder, "config.yml"), JSON.stringify(config));
  const child = spawn(REGISTRY, ["serve", join(folder, "config.yml")], { stdio: "ignore" });
  await untilUp(child, host);
  return {
    host,
    push: async (docker, image, repo) => {
      await docker.getImage(image).tag({ repo, tag: "1" });
      const authconfig = { ...login, serveraddress: host };
      const stream = await docker.getImage(`${repo}:1`).push({ authconfig });
      const lines = await new Promise<{ aux?: { Digest?: string } }[]>((resolve, reject) => {
        docker.modem.followProgress(stream, (error, told) => (error ? reject(error) : resolve(told)));
      });
      await docker.getImage(`${repo}:1`).remove();
      return lines.find((line) => line.aux?.Digest)?.aux?.Digest ?? "";
    },
    changeLogin: (next) => {
      login = next;
      // The registry reloads the file when its mtime changes.
      const before = statSync(passwords).mtimeMs;
      writeFileSync(passwords, passwordLine(login));
      if (statSync(passwords).mtimeMs === before) utimesSync(passwords, new Date(), new Date(before + 1000));
    },
    close: async () => {
      child.kill();
      await once(child, "exit");
      await rm(folder, { recursive: true });
    },
  };
}

/** Through stdin, so that it does not appear in a command line, where a leak test would find it. */
function passwordLine({ username, password }: Login): Buffer {
  return execFileSync(HTPASSWD, ["-Bin", username], { input: password });
}

async function untilUp(child: ChildProcess, host: string): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    if (child.exitCode !== null) throw new Error(`the registry ended with code ${child.exitCode}`);
    const answer = await fetch(`http://${host}/v2/`).catch(() => null);
    if (answer?.status === 401) return;
    await delay(50);
  }
  throw new Error("the registry did not come up");
}
