import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Installation } from "../../support/installation.ts";
import type { Machine } from "../../support/machine.ts";
import { waitFor } from "../../support/wait-for.ts";
import { LOGIN, type Stage, TOKEN } from "./stage.ts";

/** What a drill must lead to. */
export interface Outcome {
  /** The version that answers calls in the end, from one container alone; null: nothing runs. */
  readonly serves: string | null;
  /** Where that is not what was asked for: the reason that the node gives, in its message, its conditions or its events. */
  readonly because?: RegExp;
  /** How many agents run beside it, each in one container. */
  readonly agents?: number;
  readonly installation?: Installation;
}

const SETTLED_MS = 90_000;
const CANARIES = [TOKEN.split("\n")[0] ?? "", LOGIN.password];

/**
 * The same assertions after every drill: what was asked for is there or the reason is told, with one container per workload; no
 * secret is left behind; and nobody else's things were touched.
 */
export async function expectSettled(stage: Stage, machine: Machine, outcome: Outcome): Promise<void> {
  let lacking = "";
  await waitFor("the node to settle", SETTLED_MS, async () => {
    lacking = (await whatIsLacking(stage, machine, outcome)) ?? "";
    return lacking === "";
  }).catch((error: unknown) => {
    throw new Error(`${lacking}\n${machine.daemon.lastLines()}`, { cause: error });
  });
  const leaks = leakedSecrets(stage, machine, outcome.installation ?? stage.installation);
  if (leaks.length > 0) throw new Error(`secrets in the clear: ${leaks.join(", ")}`);
  const touched = await stage.bystanders.difference();
  if (touched !== null) throw new Error(touched);
}

async function whatIsLacking(
  stage: Stage,
  machine: Machine,
  { serves, because, agents = 0 }: Outcome,
): Promise<string | null> {
  const node = await machine.node();
  const told = `${node.status}: ${node.statusMessage}`;
  if (because === undefined && node.status !== "active") return told;
  if (because !== undefined && !(await allThatIsTold(machine)).some((text) => because.test(text))) {
    return `nothing says ${because}; ${told}`;
  }
  const [all, running] = [await machine.containers(), await machine.running()];
  const wanted = (serves === null ? 0 : 1) + agents;
  // A container that failed stays, so that a daemon which starts anew knows it.
  const failed = because === undefined ? 0 : 1;
  if (running.length !== wanted || all.length > wanted + failed) {
    return `${all.length} containers, ${running.length} run; ${told}`;
  }
  if (serves !== null) {
    const answer = await machine.ask();
    if (answer !== serves) return `${answer} answers instead of ${serves}; ${told}`;
  }
  return foldersLacking(stage, machine, all);
}

/** @returns all that an operator can read about a node now; of its events those since its last change. */
async function allThatIsTold(machine: Machine): Promise<string[]> {
  const { statusMessage, conditions } = await machine.node();
  const newestFirst = await machine.events();
  const change = newestFirst.findIndex(({ kind }) => kind === "update_requested");
  const events = newestFirst.slice(0, change < 0 ? undefined : change);
  return [
    statusMessage,
    ...conditions.filter(({ status }) => status !== "ok").map(({ reason, message }) => `${reason} ${message}`),
    ...events.map(({ kind, message }) => `${kind} ${message}`),
  ];
}

/** A container has a folder of opened secrets as long as it is there, and not longer. */
async function foldersLacking(stage: Stage, machine: Machine, containers: readonly string[]): Promise<string | null> {
  const names = containers.length === 0 ? "" : await machine.docker("inspect", "-f", "{{.Name}}", ...containers);
  const expected = names
    .split("\n")
    .filter(Boolean)
    .map((name) => name.slice(1));
  const folders = stage.secretFolders(machine);
  return String(folders.toSorted()) === String(expected.toSorted())
    ? null
    : `folders of secrets: ${folders.join(", ") || "none"}; containers: ${expected.join(", ") || "none"}`;
}

/** @returns the places that hold a secret in the clear: whatever the platform and the daemon keep and say. */
function leakedSecrets(stage: Stage, machine: Machine, installation: Installation): string[] {
  const places = new Map<string, string>();
  for (const file of [...filesIn(installation.dir), ...filesIn(stage.host.dir, /dockerd\.log$/)]) {
    places.set(file, readText(file));
  }
  for (const program of [installation.server, machine.daemon]) {
    if (!program.running) continue;
    for (const file of ["cmdline", "environ"]) {
      places.set(`${program.pid}/${file}`, readText(`/proc/${program.pid}/${file}`));
    }
  }
  const forms = CANARIES.flatMap((canary) => [canary, Buffer.from(canary).toString("base64")]);
  return [...places].filter(([, text]) => forms.some((form) => text.includes(form))).map(([place]) => place);
}

/** A file may go while we look, and a socket is no text. */
function readText(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "";
  }
}

function filesIn(folder: string, name = /./): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: folder.includes("fairlead-drill-") })
    .filter((entry) => entry.isFile() && name.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
}
