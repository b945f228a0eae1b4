import { setTimeout as delay } from "node:timers/promises";
import { type Command, InvalidArgumentError, Option } from "commander";
import { z } from "zod";
import { CliError, Interrupted } from "../cli-error.ts";
import type { CommandContext } from "../context.ts";
import { isDuration, parseDuration } from "../input/duration.ts";
import type { ClientOptions, PlatformConnection } from "../platform/client-options.ts";
import { callJson, Refused, Unanswered } from "../platform/http-client.ts";
import type { HistoryEvent } from "./history.ts";
import type { Terminal } from "./terminal.ts";
import { visible } from "./visible.ts";

/** Follows a resource after a request: prints its events and progress. */

export interface WaitOptions extends ClientOptions {
  readonly wait?: boolean;
}

export interface BoundedWaitOptions extends WaitOptions {
  /** Seconds. */
  readonly timeout?: number;
}

/** A resource of type T with events of type E. */
export interface Watch<T, E extends HistoryEvent> {
  readonly path: string;
  readonly schema: z.ZodType<T>;
  readonly event: z.ZodType<E>;
  /** ID of the newest event before the request; "" if there is none. */
  readonly after: string;
  readonly until: (now: T) => boolean;
  /** Progress lines, each printed once. */
  readonly progressOf: (now: T) => readonly string[];
  /** The state entered with the event, or null. */
  readonly stateOf: (event: E) => string | null;
  /** Why waiting is pointless, or null. */
  readonly endOf: (now: T, news: readonly E[]) => string | null;
  /** Timeout; undefined waits forever. */
  readonly seconds?: number | undefined;
  /** Commands that show the current state. */
  readonly lookAgain: string;
}

const LOOK_MS = 1000;
/** How long the platform may be unreachable, for example during a restart. */
const SILENCE_MS = 5 * 60_000;

export function addWaitOptions(command: Command, until: string): Command {
  return command
    .addOption(new Option("--wait", `show progress until ${until} (default in a terminal)`))
    .option("--no-wait", "return immediately");
}

/** For waits that may never end. */
export function addTimeoutOption(command: Command): Command {
  return command.option("--timeout <duration>", "maximum time to wait: 90s, 10m (default: no limit)", toSeconds);
}

function toSeconds(text: string): number {
  if (!isDuration(text)) throw new InvalidArgumentError("Must be a duration such as 90s, 30m or 2h.");
  return parseDuration(text);
}

/** Whether to wait; by default only in a terminal. */
export function waits(terminal: Terminal, { wait, json }: WaitOptions): boolean {
  return wait ?? (terminal.outputIsInteractive && json !== true);
}

/** @param path of the resource. */
export async function newestEvent(host: PlatformConnection, path: string): Promise<string> {
  const { events } = await callJson(host, { path: `${path}/events?pageSize=1` }, newestSchema);
  return events[0]?.id ?? "";
}

const newestSchema = z.object({ events: z.array(z.object({ id: z.string() })) });

/** @returns the resource once `until` holds. @throws CliError on failure or timeout; Interrupted on Ctrl-C, which does not stop the operation */
export function watch<T, E extends HistoryEvent>(
  context: Watcher,
  host: PlatformConnection,
  watched: Watch<T, E>,
): Promise<T> {
  const { path, schema, until, endOf, seconds = Number.POSITIVE_INFINITY } = watched;
  const giveUpAt = context.clock.monotonic() + seconds * 1000;
  return follow(context, watched, async (teller) => {
    const news = await eventsSince(host, watched, teller.latest);
    const now = await callJson(host, { path }, schema);
    teller.tell(news, now);
    if (until(now)) return now;
    const end = endOf(now, news);
    if (end !== null) throw new CliError(end);
    if (context.clock.monotonic() >= giveUpAt) throw new CliError(outOfTime(seconds, watched.lookAgain));
    return null;
  });
}

/** Waits until the resource is deleted. @throws Interrupted on Ctrl-C, which does not stop the operation */
export async function watchDeletion<T, E extends HistoryEvent>(
  context: Watcher,
  host: PlatformConnection,
  watched: Omit<Watch<T, E>, "until" | "endOf" | "seconds">,
): Promise<void> {
  await follow(context, watched, async (teller) => {
    const now = await find(host, watched);
    if (now === null) return true;
    const news = await eventsSince(host, watched, teller.latest).catch(unlessGone);
    teller.tell(news ?? [], now);
    return null;
  });
}

/** @returns null if there is no such resource. */
export function find<T>(
  host: PlatformConnection,
  { path, schema }: Pick<Watch<T, never>, "path" | "schema">,
): Promise<T | null> {
  return callJson(host, { path }, schema).catch(unlessGone);
}

function unlessGone(error: unknown): null {
  if (error instanceof Refused && error.code === "not_found") return null;
  throw error;
}

type Watcher = Pick<CommandContext, "terminal" | "clock">;

/** Polls until `look` returns a value; tolerates an unreachable platform for a while. */
async function follow<T, E extends HistoryEvent, R>(
  { terminal, clock }: Watcher,
  watched: Pick<Watch<T, E>, "after" | "progressOf" | "stateOf" | "lookAgain">,
  look: (teller: Teller<T, E>) => Promise<R | null>,
): Promise<R> {
  const stop = new AbortController();
  const release = terminal.onInterrupt(() => stop.abort());
  const teller = new Teller(terminal, watched);
  let silentSince: number | null = null;
  try {
    for (;;) {
      try {
        const seen = await look(teller);
        if (seen !== null) return seen;
        silentSince = null;
      } catch (error) {
        if (!isAway(error) || clock.monotonic() - (silentSince ?? clock.monotonic()) > SILENCE_MS) throw error;
        if (silentSince === null) terminal.note("the platform does not respond; retrying");
        silentSince ??= clock.monotonic();
      }
      await delay(LOOK_MS, undefined, { signal: stop.signal });
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    terminal.note(`Stopped waiting; the operation continues. Check it with ${watched.lookAgain}.`);
    throw new Interrupted();
  } finally {
    release();
  }
}

function isAway(error: unknown): boolean {
  return error instanceof Unanswered || (error instanceof Refused && error.code === "unavailable");
}

function outOfTime(seconds: number, lookAgain: string): string {
  return `Not done after ${seconds} s; the operation continues. Check it with ${lookAgain}.`;
}

/** Oldest first. IDs increase with time. */
async function eventsSince<E extends HistoryEvent>(
  host: PlatformConnection,
  { path, event }: Pick<Watch<unknown, E>, "path" | "event">,
  after: string,
): Promise<E[]> {
  const page = z.object({ events: z.array(event) });
  const { events } = await callJson(host, { path: `${path}/events?pageSize=200` }, page);
  return events.filter(({ id }) => id > after).reverse();
}

/** Prints each line once. */
class Teller<T, E extends HistoryEvent> {
  readonly #terminal: Terminal;
  readonly #watched: Pick<Watch<T, E>, "progressOf" | "stateOf">;
  #latest: string;
  #told: readonly string[] = [];

  constructor(terminal: Terminal, watched: Pick<Watch<T, E>, "after" | "progressOf" | "stateOf">) {
    this.#terminal = terminal;
    this.#watched = watched;
    this.#latest = watched.after;
  }

  get latest(): string {
    return this.#latest;
  }

  tell(news: readonly E[], now: T): void {
    const said = news.map((event) => lineOf(this.#watched.stateOf(event), event.message));
    const progress = this.#watched.progressOf(now);
    // The progress often repeats the latest event.
    const more = progress.filter((each) => !this.#told.includes(each) && !said.some((line) => each.endsWith(line)));
    for (const line of [...said, ...more]) this.#terminal.note(visible(line));
    this.#latest = news.at(-1)?.id ?? this.#latest;
    this.#told = [...progress, ...said];
  }
}

/** @param state the state that was entered, or null. */
export function lineOf(state: string | null, message: string): string {
  return state === null ? message : `${state}: ${message}`;
}

/** Pull progress is printed in these steps. */
const PERCENT_STEP = 10;

export function stepOf(percent: number): string {
  return `${Math.floor(percent / PERCENT_STEP) * PERCENT_STEP} %`;
}
