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
  /** Of secrets beyond those that every machine has. */
  readonly secrets?: readonly string[];
  /** Of secrets that the engine has as variables: Docker shows these, and nobody else. */
  readonly variables?: readonly string[];
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
  const leaks = await leakedSecrets(stage, machine, outcome);
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
async function leakedSecrets(stage: Stage, machine: Machine, outcome: Outcome): Promise<string[]> {
  const { installation = stage.installation, secrets = [], variables = [] } = outcome;
  const places = new Map<string, string>();
  for (const file of [...filesIn(installation.dir), ...filesIn(stage.host.dir, /dockerd\.log$/)]) {
    places.set(file, readText(file));
  }
  for (const program of [installation.server, machine.daemon]) {
    if (!program.running) continue;
    places.set(`${program.pid}/environ`, readText(`/proc/${program.pid}/environ`));
  }
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    places.set(`${pid}/cmdline`, readText(`/proc/${pid}/cmdline`));
  }
  const hidden = [...CANARIES, ...secrets];
  const leaks = placesOf([...hidden, ...variables], places);
  const containers = await machine.containers();
  const inspected = containers.length === 0 ? "" : await machine.docker("inspect", ...containers);
  return [...leaks, ...placesOf(hidden, new Map([["docker inspect", inspected]]))];
}

function placesOf(secrets: readonly string[], places: ReadonlyMap<string, string>): string[] {
  const forms = secrets.flatMap(formsOf);
  return [...places].filter(([, text]) => forms.some((form) => text.includes(form))).map(([place]) => place);
}

/** As it is, and as a careless program would write it: Base64 of a text around it has three ways to write it, and ends that are not its own. */
function formsOf(secret: string): string[] {
  const within = [0, 1, 2].map((offset) =>
    Buffer.from(`${" ".repeat(offset)}${secret}`)
      .toString("base64url")
      .slice(offset === 0 ? 0 : 4, -4),
  );
  return [secret, Buffer.from(secret).toString("hex"), ...within];
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
