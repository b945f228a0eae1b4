import { setTimeout as delay } from "node:timers/promises";
import { type Node, type NodeEvent, nodeEventSchema, nodeSchema } from "@fairlead/protocol/resources";
import { type Command, Option } from "commander";
import { z } from "zod";
import { CliError, Interrupted } from "../cli-error.ts";
import type { ClientOptions, Platform } from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson, Refused, Unanswered } from "../http-client.ts";
import type { Terminal } from "../terminal.ts";
import { visible } from "../visible.ts";
import { nodePath } from "./node-reference.ts";

/** Follows what a node does after it was asked for something: its events, and how far images have come. */

export interface WaitOptions extends ClientOptions {
  readonly wait?: boolean;
}

export interface Watch {
  readonly id: string;
  /** The newest event from before the node was asked; "" for none. */
  readonly after: string;
  readonly until: (node: Node) => boolean;
}

const eventsSchema = z.object({ events: z.array(nodeEventSchema) });
const LOOK_MS = 1000;
/** How long a platform may not answer, while it is started anew say, before nobody waits for it any more. */
const SILENCE_MS = 5 * 60_000;
/** A pull is told of in steps of so many percent. */
const PERCENT_STEP = 10;
/** Nothing better comes by itself after these. */
const GIVEN_UP = new Set(["update_rolled_back", "provisioning_failed"]);

export function addWaitOptions(command: Command, until: string): Command {
  return command
    .addOption(new Option("--wait", `show what the node does until ${until} (default at a terminal)`))
    .option("--no-wait", "answer at once");
}

/** Whether to wait: as asked; else where somebody looks on. */
export function waits(terminal: Terminal, { wait, json }: WaitOptions): boolean {
  return wait ?? (terminal.outputIsInteractive && json !== true);
}

export async function newestEvent(host: Platform, id: string): Promise<string> {
  const { events } = await callJson(host, { path: `${nodePath(id)}/events?pageSize=1` }, eventsSchema);
  return events[0]?.id ?? "";
}

/** @returns the node as it was wanted. @throws CliError where that is given up; Interrupted after Ctrl-C, which ends the looking alone */
export function watchNode(context: Context, host: Platform, { id, after, until }: Watch): Promise<Node> {
  return follow(context, { id, after }, async (teller) => {
    const news = await eventsSince(host, id, teller.latest);
    const node = await callJson(host, { path: nodePath(id) }, nodeSchema);
    teller.tell(news, node);
    if (until(node)) return node;
    const end = news.find(({ kind }) => GIVEN_UP.has(kind));
    if (end !== undefined) throw givenUp(node);
    return null;
  });
}

/** Why stands above, as the last of what the node did. */
function givenUp({ id, status }: Node): CliError {
  const advice = status === "failed" ? ` Delete it (\`fairlead node delete ${id}\`), and create another one.` : "";
  return new CliError(`Given up: the node is ${status}.${advice}`);
}

/** Until there is no such node any more. @throws Interrupted after Ctrl-C, which ends the looking alone */
export async function watchDeletion(context: Context, host: Platform, watch: Omit<Watch, "until">): Promise<void> {
  await follow(context, watch, async (teller) => {
    const node = await findNode(host, watch.id);
    if (node === null) return true;
    const news = await eventsSince(host, watch.id, teller.latest).catch(unlessGone);
    teller.tell(news ?? [], node);
    return null;
  });
}

/** Null: there is none. */
export function findNode(host: Platform, id: string): Promise<Node | null> {
  return callJson(host, { path: nodePath(id) }, nodeSchema).catch(unlessGone);
}

function unlessGone(error: unknown): null {
  if (error instanceof Refused && error.code === "not_found") return null;
  throw error;
}

/** Looks until there is something to return; a platform that does not answer for a while is waited for. */
async function follow<T>(
  { terminal, clock }: Context,
  { id, after }: Omit<Watch, "until">,
  look: (teller: Teller) => Promise<T | null>,
): Promise<T> {
  const stop = new AbortController();
  const release = terminal.onInterrupt(() => stop.abort());
  const teller = new Teller(terminal, after);
  let silentSince: number | null = null;
  try {
    for (;;) {
      try {
        const seen = await look(teller);
        if (seen !== null) return seen;
        silentSince = null;
      } catch (error) {
        if (!isAway(error) || clock.monotonic() - (silentSince ?? clock.monotonic()) > SILENCE_MS) throw error;
        if (silentSince === null) terminal.note("the platform does not answer; looking again until it does");
        silentSince ??= clock.monotonic();
      }
      await delay(LOOK_MS, undefined, { signal: stop.signal });
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    terminal.note(
      `not waiting any more; it goes on. Look again with \`fairlead node get ${id}\` or \`fairlead node events ${id}\`.`,
    );
    throw new Interrupted();
  } finally {
    release();
  }
}

function isAway(error: unknown): boolean {
  return error instanceof Unanswered || (error instanceof Refused && error.code === "unavailable");
}

/** Oldest first. Ids grow with time. */
async function eventsSince(host: Platform, id: string, after: string): Promise<NodeEvent[]> {
  const { events } = await callJson(host, { path: `${nodePath(id)}/events?pageSize=200` }, eventsSchema);
  return events.filter((event) => event.id > after).reverse();
}

/** Says each thing once. */
class Teller {
  readonly #terminal: Terminal;
  #latest: string;
  #percent = "";

  constructor(terminal: Terminal, after: string) {
    this.#terminal = terminal;
    this.#latest = after;
  }

  get latest(): string {
    return this.#latest;
  }

  tell(news: readonly NodeEvent[], node: Node): void {
    for (const { id, status, message } of news) {
      this.#latest = id;
      this.#terminal.note(visible(status === null ? message : `${status}: ${message}`));
    }
    for (const { name, desiredImage, progress } of node.workloads) {
      if (progress === null) continue;
      const told = `${name}: pulling ${desiredImage}: ${Math.floor(progress / PERCENT_STEP) * PERCENT_STEP} %`;
      if (told !== this.#percent) this.#terminal.note(visible(told));
      this.#percent = told;
    }
  }
}

/** What was asked for runs, and is ready. */
export function isUpToDate({ status, workloads }: Node): boolean {
  return status === "active" && workloads.every(({ upToDate, ready }) => upToDate && ready);
}
