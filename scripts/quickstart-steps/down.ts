import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { removeCommandLink } from "./command-link.ts";
import { readState, type State } from "./env-file.ts";
import { DAEMON, daemonStatus, runProgram } from "./fairlead.ts";
import { ENGINE_IMAGE, type Installation, installationIn } from "./installation.ts";
import { endLogin } from "./login.ts";
import { stop } from "./programs.ts";
import { interruption, step } from "./progress.ts";

/** `down.ts down|purge DATA_DIR`: stops all programs; purge also removes Docker resources. The caller removes the folder. */

/** The daemon's default. */
const SECRETS = "/run/fairlead-daemon/secrets";

/** Label filter for this installation's containers. */
function installationLabel({ INSTALLATION_ID: id }: State): string | null {
  return id === undefined ? null : `label=dev.fairlead.installation=${id}`;
}

function docker(...args: readonly string[]): string[] {
  const output = execFileSync("docker", args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  return output.split("\n").filter(Boolean);
}

function dockerAnswers(): boolean {
  try {
    docker("info");
    return true;
  } catch {
    return false;
  }
}

function stopContainers(label: string): string {
  const running = docker("ps", "-q", "--filter", label);
  if (running.length > 0) docker("stop", ...running);
  return `${running.length} stopped`;
}

async function removeFromDocker(at: Installation, label: string): Promise<string> {
  const containers = docker("ps", "-aq", "--filter", label);
  await purgeNode(at);
  const left = docker("ps", "-aq", "--filter", label);
  if (left.length > 0) docker("rm", "-f", "-v", ...left);
  const networks = docker("network", "ls", "-q", "--filter", label);
  if (networks.length > 0) docker("network", "rm", ...networks);
  const volumes = docker("volume", "ls", "-q", "--filter", label);
  if (volumes.length > 0) docker("volume", "rm", ...volumes);
  const image = existsSync(at.imageMark) && docker("images", "-q", ENGINE_IMAGE).length > 0;
  // Keep the image if another installation uses it.
  const kept = image && docker("ps", "-aq", "--filter", `ancestor=${ENGINE_IMAGE}`).length > 0;
  if (image && !kept) docker("image", "rm", ENGINE_IMAGE);
  return `${containers.length} containers and ${volumes.length} volumes removed${image && !kept ? ", image removed" : ""}`;
}

/** Uses the daemon, because it also installed packet filter rules. */
async function purgeNode(at: Installation): Promise<void> {
  if (!existsSync(at.daemonState)) return;
  const { enrolled } = await daemonStatus(at);
  if (enrolled) await runProgram(at, [DAEMON, "purge", "--state-dir", at.daemonState]);
}

/** Secrets are outside the data folder; the daemon writes them again before each start. */
function removeSecrets({ FAIRLEAD_NODE_ID: nodeId }: State): void {
  if (nodeId !== undefined && /^nod_\w+$/.test(nodeId)) rmSync(join(SECRETS, nodeId), { recursive: true, force: true });
}

async function removeClient(at: Installation, { FAIRLEAD_BASE_URL: baseUrl }: State): Promise<void> {
  if (baseUrl !== undefined) await endLogin(at, baseUrl);
  if (existsSync(at.commandMark)) removeCommandLink(at, readFileSync(at.commandMark, "utf8").trim());
}

async function down(at: Installation, purge: boolean): Promise<void> {
  const interrupt = interruption();
  const state = readState(at.stateFile);
  if (purge) {
    // While the server is running, to revoke the session too.
    await step("removing the login and the command", interrupt, async () => removeClient(at, state));
  }
  // The daemon first, because it would restart stopped containers.
  for (const name of ["daemon", "server"]) {
    await step(`stopping the ${name === "server" ? "control plane" : name}`, interrupt, async (progress) => {
      if (!(await stop(at, name))) progress.note("was not running");
    });
  }
  const label = installationLabel(state);
  await step(purge ? "removing the engine" : "stopping the engine", interrupt, async (progress) => {
    if (label === null) progress.note("none created");
    else if (!dockerAnswers()) progress.note("Docker is not running");
    else progress.note(purge ? await removeFromDocker(at, label) : stopContainers(label));
  });
  await step("removing decrypted secrets", interrupt, async () => removeSecrets(state));
}

const [, , action = "", dataDir = ""] = process.argv;
await down(installationIn(dataDir), action === "purge");
process.exit(0);
