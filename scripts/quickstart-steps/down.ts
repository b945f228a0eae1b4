import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { z } from "zod";
import { type ClientEnv, readEnvFile } from "./env-file.ts";
import { ENGINE_IMAGE, type Installation, installationIn } from "./installation.ts";
import { stop } from "./programs.ts";
import { interruption, step } from "./progress.ts";

/** `down.ts down|purge DATA_DIR`: stops what runs; purge also removes what Docker holds. The caller removes the folder. */

const issuerSchema = z.object({ iss: z.string() });

/** Our tokens are issued by the installation's id (docs/decisions/0005), and its containers carry that id as a label. */
function installationLabel({ FAIRLEAD_TOKEN: token }: ClientEnv): string | null {
  const payload = token?.split(".")[1];
  if (payload === undefined) return null;
  const { iss } = issuerSchema.parse(JSON.parse(Buffer.from(payload, "base64url").toString("utf8")));
  return `label=dev.fairlead.installation=${iss}`;
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

function removeFromDocker(at: Installation, label: string): string {
  const containers = docker("ps", "-aq", "--filter", label);
  if (containers.length > 0) docker("rm", "-f", "-v", ...containers);
  const volumes = docker("volume", "ls", "-q", "--filter", label);
  if (volumes.length > 0) docker("volume", "rm", ...volumes);
  const image = existsSync(at.imageMark) && docker("images", "-q", ENGINE_IMAGE).length > 0;
  // Another installation may still use the image: then it stays.
  const kept = image && docker("ps", "-aq", "--filter", `ancestor=${ENGINE_IMAGE}`).length > 0;
  if (image && !kept) docker("image", "rm", ENGINE_IMAGE);
  return `${containers.length} containers and ${volumes.length} volumes removed${image && !kept ? ", and the image" : ""}`;
}

async function down(at: Installation, purge: boolean): Promise<void> {
  const interrupt = interruption();
  // The daemon first: it would start again what is stopped under its eyes.
  for (const name of ["daemon", "server"]) {
    await step(`stopping the ${name === "server" ? "control plane" : name}`, interrupt, async (progress) => {
      if (!(await stop(at, name))) progress.note("did not run");
    });
  }
  const label = installationLabel(readEnvFile(at.envFile));
  await step(purge ? "removing the engine" : "stopping the engine", interrupt, async (progress) => {
    if (label === null) progress.note("none was made");
    else if (!dockerAnswers()) progress.note("Docker does not run, so nothing does");
    else progress.note(purge ? removeFromDocker(at, label) : stopContainers(label));
  });
}

const [, , action = "", dataDir = ""] = process.argv;
await down(installationIn(dataDir), action === "purge");
process.exit(0);
