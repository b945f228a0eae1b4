import { setTimeout as delay } from "node:timers/promises";
import { type Node, nodeSchema } from "@fairlead/protocol/resources";
import { z } from "zod";
import { CliError, Interrupted } from "../cli-error.ts";
import type { CommandContext } from "../context.ts";
import type { PlatformConnection } from "../platform/client-options.ts";
import { callJson } from "../platform/http-client.ts";
import { visible } from "../terminal/visible.ts";
import { nodePath } from "./node-reference.ts";

/** Updates daemons in batches and stops when a node does not come back. */

export interface Roll {
  readonly version: string;
  readonly batch: number;
  readonly timeoutMs: number;
}

export type RollResult = "updated" | "already" | "failed" | "not asked";

/** The result for one node. */
export interface RolledNode {
  readonly nodeId: string;
  readonly identifier: string;
  readonly from: string;
  readonly daemonVersion: string;
  readonly result: RollResult;
  /** Why it failed, or "". */
  readonly message: string;
}

const LOOK_MS = 1000;
/** Statuses in which the daemon is connected. */
const REACHABLE: ReadonlySet<Node["status"]> = new Set(["starting", "active", "degraded", "draining", "drained"]);
const GIVEN_UP: ReadonlySet<string> = new Set(["rolled_back", "refused"]);

export function isReachable({ status, daemonVersion }: Node): boolean {
  return daemonVersion !== "" && REACHABLE.has(status);
}

/** @returns one result per node, in order. @throws Interrupted on Ctrl-C; started updates continue */
export async function rollDaemons(
  context: CommandContext,
  host: PlatformConnection,
  { nodes, roll }: { readonly nodes: readonly Node[]; readonly roll: Roll },
): Promise<RolledNode[]> {
  const stop = new AbortController();
  const release = context.terminal.onInterrupt(() => stop.abort());
  const results: RolledNode[] = nodes
    .filter((node) => runs(node, roll.version))
    .map((node) => resultOf(node, "already"));
  const waiting = nodes.filter((node) => !runs(node, roll.version));
  try {
    for (let start = 0; start < waiting.length; start += roll.batch) {
      const batch = waiting.slice(start, start + roll.batch);
      const one = new NodeRoll({ context, host, roll, signal: stop.signal });
      const ended = await Promise.all(batch.map((node) => one.run(node)));
      results.push(...ended);
      if (stop.signal.aborted) throw interrupted(context, batch, waiting.slice(start + roll.batch));
      if (ended.every(({ result }) => result === "updated")) continue;
      results.push(...waiting.slice(start + roll.batch).map((node) => resultOf(node, "not asked")));
      break;
    }
  } finally {
    release();
  }
  return nodes.flatMap(({ id }) => results.filter(({ nodeId }) => nodeId === id));
}

function interrupted({ terminal }: CommandContext, batch: readonly Node[], rest: readonly Node[]): Interrupted {
  const names = (some: readonly Node[]): string =>
    some.map(({ identifier }) => visible(identifier)).join(", ") || "none";
  terminal.note(
    `stopped. Still updating: ${names(batch)}. Not started: ${names(rest)}.\n` +
      "Check with `fairlead node versions`. Run the same command again to resume.",
  );
  return new Interrupted();
}

interface NodeRollDeps {
  readonly context: CommandContext;
  readonly host: PlatformConnection;
  readonly roll: Roll;
  readonly signal: AbortSignal;
}

class NodeRoll {
  readonly #deps: NodeRollDeps;

  constructor(deps: NodeRollDeps) {
    this.#deps = deps;
  }

  /** Updates one node and waits for the result. */
  async run(before: Node): Promise<RolledNode> {
    const { host, roll, signal, context } = this.#deps;
    // Requesting the version again would restart an update that an earlier run started.
    if (!isUnderWay(before, roll.version)) {
      const path = `${nodePath(before.id)}/daemon-version`;
      await callJson(host, { method: "PUT", path, body: { version: roll.version } }, z.object({}));
    }
    const deadline = context.clock.monotonic() + roll.timeoutMs;
    let told = "";
    let node = before;
    while (!signal.aborted) {
      node = await callJson(host, { path: nodePath(before.id) }, nodeSchema);
      const text = progressText(node);
      if (text !== told) context.terminal.note(visible(text));
      told = text;
      if (isBack(node, before, roll.version)) return resultOf(node, "updated", before);
      const failure = failureOf(node, before, roll.version);
      if (failure !== null) return { ...resultOf(node, "failed", before), message: failure };
      if (context.clock.monotonic() >= deadline) {
        const message = `it did not come back within ${roll.timeoutMs / 1000} s; its status is ${node.status}`;
        return { ...resultOf(node, "failed", before), message };
      }
      await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
    }
    return resultOf(node, "not asked", before);
  }
}

function runs({ daemonVersion, daemonUpdate }: Node, version: string): boolean {
  return daemonVersion === version && daemonUpdate?.state !== "trial";
}

function isUnderWay({ desiredDaemonVersion, daemonUpdate }: Node, version: string): boolean {
  if (desiredDaemonVersion !== version || daemonUpdate?.wanted !== version) return false;
  return daemonUpdate.state !== "done" && !GIVEN_UP.has(daemonUpdate.state);
}

/** The update is confirmed and the node has its earlier status again. */
function isBack(node: Node, before: Node, version: string): boolean {
  const { daemonUpdate: update } = node;
  const proven = node.daemonVersion === version && update?.wanted === version && update.state === "done";
  return proven && (node.status === "active" || node.status === before.status);
}

/** The failure of an earlier update does not count. */
function failureOf({ daemonUpdate: update }: Node, before: Node, version: string): string | null {
  if (update?.wanted !== version || !GIVEN_UP.has(update.state)) return null;
  return update.since === before.daemonUpdate?.since ? null : update.message;
}

function progressText({ identifier, status, daemonVersion, daemonUpdate }: Node): string {
  const update =
    daemonUpdate === null ? "not started" : [daemonUpdate.state, daemonUpdate.message].filter(Boolean).join(": ");
  return `${identifier}: ${status}, ${daemonVersion}, ${update}`;
}

function resultOf(node: Node, result: RollResult, before: Node = node): RolledNode {
  const { id: nodeId, identifier, daemonVersion } = node;
  return { nodeId, identifier, from: before.daemonVersion, daemonVersion, result, message: "" };
}

/** @throws CliError that says what to do, if a node failed */
export function requireAllBack(rolled: readonly RolledNode[], version: string): void {
  const failed = rolled.filter(({ result }) => result === "failed");
  if (failed.length === 0) return;
  const rest = rolled.filter(({ result }) => result === "not asked").length;
  const lines = failed.map(
    ({ identifier, message }) => `${visible(identifier)} is not on ${version}: ${visible(message)}`,
  );
  const [first] = failed;
  lines.push(
    `Stopped; ${rest} more nodes were not updated. See \`fairlead node events ${first?.nodeId}\`. When the problem is fixed, ` +
      "run the same command again to retry this node and continue.",
  );
  throw new CliError(lines.join("\n"));
}
