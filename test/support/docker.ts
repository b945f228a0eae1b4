import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { describe, test } from "vitest";

const run = promisify(execFile);
const BUILD_IMAGE = new URL("../../packages/engine/image/build-image.sh", import.meta.url).pathname;

const BUILD_AGENT_IMAGE = new URL("../../packages/demo-agent/image/build-image.sh", import.meta.url).pathname;

export const DEMO_IMAGE = "fairlead/demo-engine:1";

/** Builds the demo engine's image where it is missing or out of date. */
export async function ensureDemoImage(): Promise<void> {
  await run(BUILD_IMAGE, [DEMO_IMAGE], { maxBuffer: 16 * 1024 * 1024 });
}

/** The same for the demo agent's. */
export async function ensureDemoAgentImage(): Promise<void> {
  await run(BUILD_AGENT_IMAGE, [], { maxBuffer: 16 * 1024 * 1024 });
}

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

/** A suite that needs a Docker engine. Where none answers it is one skipped test that says so. */
export function describeWithDocker(name: string, suite: () => void): void {
  if (spawnSync("docker", ["info"], { stdio: "ignore" }).status === 0) describe(name, suite);
  else test(name, ({ skip }) => skip("no Docker engine answers on this machine"));
}

/** This machine's address on Docker's default bridge. After its first start, Docker 20.10 knows only the subnet: then it is the first address of that. */
export async function bridgeAddress(): Promise<string> {
  const format = "{{range .IPAM.Config}}{{or .Gateway .Subnet}}{{end}}";
  const address = await docker("network", "inspect", "bridge", "--format", format);
  return address.replace(/\.0\/\d+$/, ".1");
}
