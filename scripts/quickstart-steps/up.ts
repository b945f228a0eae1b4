import { existsSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { addressOf, choosePorts, ensureControlPlane } from "./control-plane.ts";
import { readEnvFile } from "./env-file.ts";
import { type Administrator, chat, createToken, ensureAdministrator } from "./fairlead.ts";
import { type Installation, installationIn } from "./installation.ts";
import { ensureDaemon, ensureEngineImage, untilActive } from "./node.ts";
import { Interrupted, interruption, QuickstartError, say, step } from "./progress.ts";
import { ensureKey, ensureNode, ensureProject, Settings } from "./resources.ts";

/** `up.ts DATA_DIR PLATFORM_PORT INFERENCE_PORT`: what scripts/quickstart does once Node runs. An empty port means any. */

const ADMINISTRATOR: Administrator = { email: "admin@fairlead.local", name: "Administrator" };
const QUESTION = "Tell me a short story about a robot.";
const FULL_DISK_MB = 50;

async function up(at: Installation, asked: { platform: string; inference: string }): Promise<void> {
  const interrupt = interruption();
  const settings = new Settings(at, readEnvFile(at.envFile));
  const ports = choosePorts(at, asked);
  await step("control plane", interrupt, (progress) => ensureControlPlane(at, ports, { step: progress, interrupt }));
  settings.set({ FAIRLEAD_BASE_URL: addressOf(ports.platform), FAIRLEAD_MODELS_URL: addressOf(ports.inference) });
  await step("administrator", interrupt, async (progress) => {
    await ensureAdministrator(at, ADMINISTRATOR);
    settings.set({ FAIRLEAD_TOKEN: await createToken(at, ADMINISTRATOR) });
    progress.note(ADMINISTRATOR.email);
  });
  await step("project", interrupt, (progress) => ensureProject(settings, progress));
  await step("project key", interrupt, () => ensureKey(settings));
  await step("node", interrupt, (progress) => ensureNode(settings, progress));
  await step("demo engine image", interrupt, (progress) => ensureEngineImage(at, progress));
  await step("daemon", interrupt, (progress) => ensureDaemon(at, settings, progress));
  const model = await step("waiting until the node is active", interrupt, (progress) =>
    untilActive(at, settings, { step: progress, interrupt }),
  );
  settings.set({ FAIRLEAD_MODEL: model });
  ask(at, settings, interrupt);
  say(summary(at, settings));
}

function ask(at: Installation, settings: Settings, interrupt: AbortSignal): void {
  say(`\n> ${QUESTION}`);
  const answered = chat(at, settings.all, QUESTION);
  if (interrupt.aborted) throw new Interrupted();
  if (!answered) throw new QuickstartError("The node is active, but the answer failed; see above. Run this again.");
}

function summary(at: Installation, settings: Settings): string {
  return `
Platform host    ${settings.get("FAIRLEAD_BASE_URL")}
Inference host   ${settings.get("FAIRLEAD_MODELS_URL")}
Project key      ${settings.get("FAIRLEAD_API_KEY")}

Try next:
  set -a; . ${at.envFile}; set +a
  npx fairlead chat "What is 17 + 25?"
  npx fairlead chat
  npx fairlead node list

Sign in to ${settings.get("FAIRLEAD_BASE_URL")} as ${ADMINISTRATOR.email}; this makes a link that sets the password:
  npx fairlead admin reset-link ${ADMINISTRATOR.email} --config ${at.configFile}

Stop it with ${commandLine(at)} --down (your data is kept).`;
}

/** What to type for this installation. */
function commandLine(at: Installation): string {
  const isDefault = at.dataDir === join(at.root, ".fairlead");
  return `./scripts/quickstart${isDefault ? "" : ` --data-dir ${at.dataDir}`}`;
}

function explain(at: Installation, error: unknown): string {
  if (error instanceof Interrupted) {
    return `\nStopped. Run ${commandLine(at)} again to go on, or with --down to stop what runs.`;
  }
  const words =
    error instanceof QuickstartError
      ? error.message
      : error instanceof Error
        ? (error.stack ?? error.message)
        : String(error);
  return [words, ...fullDisk(at)].join("\n");
}

function fullDisk(at: Installation): string[] {
  if (!existsSync(at.dataDir)) return [];
  const { bavail, bsize } = statfsSync(at.dataDir);
  const megabytes = Math.floor((bavail * bsize) / 1024 / 1024);
  if (megabytes >= FULL_DISK_MB) return [];
  return [`The disk of ${at.dataDir} is full (${megabytes} MB left). Free some space and run this again.`];
}

const [, , dataDir = "", platform = "", inference = ""] = process.argv;
const installation = installationIn(dataDir);
try {
  await up(installation, { platform, inference });
  process.exit(0);
} catch (error) {
  process.stderr.write(`${explain(installation, error)}\n`);
  process.exit(error instanceof Interrupted ? 130 : 1);
}
