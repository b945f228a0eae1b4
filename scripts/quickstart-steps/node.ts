import { spawn } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Node } from "@fairlead/protocol/resources";
import { DAEMON, daemonStatus } from "./fairlead.ts";
import { ENGINE_IMAGE, type Installation } from "./installation.ts";
import { lastLines, type Program, runningPid, runsAsWanted, start, stop } from "./programs.ts";
import { QuickstartError, type Step, waitFor } from "./progress.ts";
import { answers, createBootstrapToken, findModel, getNode, type Settings } from "./resources.ts";

/** Builds the engine's image, starts the daemon and waits until the node is active. */

const ACTIVE_SECONDS = 180;
const NOT_ENROLLED: readonly Node["status"][] = ["provisioning", "bootstrapping"];

export async function ensureEngineImage(at: Installation, step: Step): Promise<void> {
  const before = await run("docker", ["image", "inspect", "-f", "{{.Id}}", ENGINE_IMAGE]);
  const built = await run(join(at.root, "packages/engine/image/build-image.sh"), [ENGINE_IMAGE]);
  if (built.code !== 0) throw new QuickstartError(built.output.trim());
  if (before.code !== 0) writeFileSync(at.imageMark, `${ENGINE_IMAGE}\n`);
  step.note(built.output.trim().split("\n").at(-1) ?? "");
}

async function run(command: string, args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  const closed = new Promise<number | null>((resolve, reject) => child.once("close", resolve).once("error", reject));
  const [out, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { code, output: code === 0 ? out : errors };
}

/** Makes sure that this build's daemon is running and enrolled with this control plane. */
export async function ensureDaemon(at: Installation, settings: Settings, step: Step): Promise<void> {
  const node = await getNode(settings);
  const identity = await daemonStatus(at);
  const args = ["run", "--state-dir", at.daemonState];
  const daemon: Program = { name: "daemon", bin: DAEMON, args, settings: node.id };
  const isEnrolled =
    identity.enrolled && identity.nodeId === node.id && identity.platformUrl === settings.get("FAIRLEAD_BASE_URL");
  if (isEnrolled && !NOT_ENROLLED.includes(node.status)) {
    if (runsAsWanted(at, daemon)) return step.note("already running");
    if (await stop(at, daemon.name)) step.note("restarted");
    return start(at, daemon);
  }
  await stop(at, daemon.name);
  // The folder's node was deleted together with its control plane.
  if (identity.nodeId !== null && identity.nodeId !== node.id) rmSync(at.daemonState, { recursive: true });
  writeFileSync(at.tokenFile, await createBootstrapToken(settings), { mode: 0o600 });
  start(at, daemon, ["--bootstrap-token-file", at.tokenFile]);
}

/** @returns the node's model. @throws QuickstartError with the node's message and the daemon's last log lines. */
export async function untilActive(
  at: Installation,
  settings: Settings,
  { step, interrupt }: { step: Step; interrupt: AbortSignal },
): Promise<string> {
  let seen = "";
  const model = await waitFor({
    seconds: ACTIVE_SECONDS,
    everyMs: 500,
    interrupt,
    ask: async () => {
      const node = await getNode(settings);
      const told = `${node.status}: ${node.statusMessage}`;
      if (told !== seen && node.status !== "active") step.detail(told);
      seen = told;
      if (runningPid(at, "daemon") === null)
        throw new QuickstartError(`The daemon exited. ${lastLines(at, "daemon", 15)}`);
      const served = node.status === "active" ? await findModel(settings, node) : undefined;
      // After a crash, `active` may be outdated; only a response proves it.
      return served !== undefined && (await answers(settings, served)) ? served : undefined;
    },
  });
  if (model === null) {
    throw new QuickstartError(
      `The node was not active after ${ACTIVE_SECONDS} s (${seen}).\n${lastLines(at, "daemon", 15)}\nRun this again to keep waiting.`,
    );
  }
  // Used up by the enrolment.
  rmSync(at.tokenFile, { force: true });
  step.note(model);
  return model;
}
