import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Runs the Docker client and answers what it printed, trimmed. Rejects with Docker's own words. */
export async function docker(...args: readonly string[]): Promise<string> {
  const { stdout } = await run("docker", args, { maxBuffer: 16 * 1024 * 1024 });
  return stdout.trim();
}

/** The host port that Docker picked for a container's published port. */
export async function publishedPort(container: string, port: number): Promise<number> {
  const address = await docker("port", container, `${port}/tcp`);
  return Number(address.slice(address.lastIndexOf(":") + 1));
}
