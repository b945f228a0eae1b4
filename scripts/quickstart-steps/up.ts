import { existsSync, statfsSync } from "node:fs";
import { join, resolve } from "node:path";
import { z } from "zod";
import { findCaller } from "./caller.ts";
import { type CommandLink, ensureCommandLink } from "./command-link.ts";
import { addressOf, choosePorts, ensureControlPlane } from "./control-plane.ts";
import { readState } from "./env-file.ts";
import { type Administrator, chat, createToken, ensureAdministrator } from "./fairlead.ts";
import { type Installation, installationIn } from "./installation.ts";
import { ensureLogin } from "./login.ts";
import { ensureDaemon, ensureEngineImage, untilActive } from "./node.ts";
import { Interrupted, interruption, QuickstartError, say, step } from "./progress.ts";
import { ensureDefaultModel, ensureKey, ensureNode, ensureProject, Settings } from "./resources.ts";

/** `up.ts DATA_DIR PLATFORM_PORT INFERENCE_PORT`: the part of scripts/quickstart that requires Node. An empty port means the default. */

const ADMINISTRATOR: Administrator = { email: "admin@fairlead.local", name: "Administrator" };
const QUESTION = "Tell me a short story about a robot.";
const FULL_DISK_MB = 50;

const issuerSchema = z.object({ iss: z.string() });

async function up(at: Installation, asked: { platform: string; inference: string }): Promise<void> {
  const interrupt = interruption();
  const settings = new Settings(at, readState(at.stateFile));
  const ports = choosePorts(at, asked);
  await step("control plane", interrupt, (progress) => ensureControlPlane(at, ports, { step: progress, interrupt }));
  settings.set({
    FAIRLEAD_BASE_URL: addressOf(ports.platform),
    FAIRLEAD_MODELS_URL: addressOf(ports.inference),
    FAIRLEAD_CONFIG: resolve(at.configFile),
  });
  await step("administrator", interrupt, async (progress) => {
    await ensureAdministrator(at, ADMINISTRATOR);
    settings.token = await createToken(at, ADMINISTRATOR, "15m");
    settings.set({ INSTALLATION_ID: issuerOf(settings.token) });
    progress.note(ADMINISTRATOR.email);
  });
  const link = await step("command line", interrupt, async (progress) => ensureCommandLink(at, progress));
  const isSignedIn = await step("login", interrupt, (progress) => {
    const baseUrl = settings.get("FAIRLEAD_BASE_URL");
    const makeToken = (): Promise<string> => createToken(at, ADMINISTRATOR, "30d");
    return ensureLogin(at, { baseUrl, email: ADMINISTRATOR.email, makeToken }, progress);
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
  await ensureDefaultModel(settings, model);
  ask(at, settings, interrupt);
  settings.publish();
  say(summary(at, settings, { ...link, isSignedIn }));
}

function ask(at: Installation, settings: Settings, interrupt: AbortSignal): void {
  say(`\n> ${QUESTION}`);
  const answered = chat(at, settings.all, QUESTION);
  if (interrupt.aborted) throw new Interrupted();
  if (!answered) throw new QuickstartError("The node is active, but the call failed; see above. Run this again.");
}

/** The token's issuer is the installation ID (docs/decisions/0005), which is also a label of its containers. */
function issuerOf(token: string): string {
  const payload = Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8");
  return issuerSchema.parse(JSON.parse(payload)).iss;
}

function summary(
  at: Installation,
  settings: Settings,
  { command, missingFolder, isSignedIn }: CommandLink & { readonly isSignedIn: boolean },
): string {
  return `
Platform host    ${settings.get("FAIRLEAD_BASE_URL")}
Inference host   ${settings.get("FAIRLEAD_MODELS_URL")}
Project key      ${settings.get("FAIRLEAD_API_KEY")}

Try next:
${missingFolder === null ? "" : `  export PATH="${missingFolder}:$PATH"\n`}  set -a; . ${at.envFile}; set +a
  ${command} chat "What is 17 + 25?"
  ${command} chat
  ${command} node list

${isSignedIn ? "The command line is signed in." : `The command line is not signed in: run \`${command} login\`.`}
To sign in to ${settings.get("FAIRLEAD_BASE_URL")} in a browser as ${ADMINISTRATOR.email}, set a password with the link from this command:
  ${resetLink(at, command)}

Stop it with ${commandLine(at)} --down (your data is kept).`;
}

/** Under sudo, the data folder's files belong to root and sudo does not pass on variables. */
function resetLink(at: Installation, command: string): string {
  const line = `${command} admin reset-link ${ADMINISTRATOR.email}`;
  return findCaller().ids === null ? line : `sudo ${line} --config ${at.configFile}`;
}

/** The quickstart command for this installation. */
function commandLine(at: Installation): string {
  const isDefault = at.dataDir === join(at.root, ".fairlead");
  return `./scripts/quickstart${isDefault ? "" : ` --data-dir ${at.dataDir}`}`;
}

function explain(at: Installation, error: unknown): string {
  if (error instanceof Interrupted) {
    return `\nStopped. Run ${commandLine(at)} again to continue, or with --down to stop all programs.`;
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
