import { setTimeout as delay } from "node:timers/promises";
import { type Command, InvalidArgumentError, Option } from "commander";
import { z } from "zod";
import { CliError, Interrupted } from "./cli-error.ts";
import type { ClientOptions, Platform } from "./client-options.ts";
import type { Context } from "./context.ts";
import { isDuration, parseDuration } from "./duration.ts";
import type { HistoryEvent } from "./history.ts";
import { callJson, Refused, Unanswered } from "./http-client.ts";
import type { Terminal } from "./terminal.ts";
import { visible } from "./visible.ts";

/** Follows what something does after it was asked for: its history, and how far it has come. */

export interface WaitOptions extends ClientOptions {
  readonly wait?: boolean;
}

export interface BoundedWaitOptions extends WaitOptions {
  /** Seconds. */
  readonly timeout?: number;
}

/** What is looked at, of type T, with its history. */
export interface Watch<T, E extends HistoryEvent> {
  readonly path: string;
  readonly schema: z.ZodType<T>;
  readonly event: z.ZodType<E>;
  /** The newest event from before it was asked; "" for none. */
  readonly after: string;
  readonly until: (now: T) => boolean;
  /** Lines about how far it has come, each told once. */
  readonly progressOf: (now: T) => readonly string[];
  /** The state that it entered with an event; null: none. */
  readonly stateOf: (event: E) => string | null;
  /** Why nothing better comes by itself; null: something may. */
  readonly endOf: (now: T, news: readonly E[]) => string | null;
  /** How long it is looked at; undefined: for ever. */
  readonly seconds?: number | undefined;
  /** Commands to look again with. */
  readonly lookAgain: string;
}

const LOOK_MS = 1000;
/** How long a platform may not answer, while it is started anew say, before nobody waits for it any more. */
const SILENCE_MS = 5 * 60_000;

export function addWaitOptions(command: Command, until: string): Command {
  return command
    .addOption(new Option("--wait", `show what it does until ${until} (default at a terminal)`))
    .option("--no-wait", "answer at once");
}

/** With `addWaitOptions`, where what is waited for may never come. */
export function addTimeoutOption(command: Command): Command {
  return command.option("--timeout <duration>", "wait no longer than so: 90s, 10m (default: for ever)", toSeconds);
}

function toSeconds(text: string): number {
  if (!isDuration(text)) throw new InvalidArgumentError("Write 90s, 30m or 2h.");
  return parseDuration(text);
}

/** Whether to wait: as asked; else where somebody looks on. */
export function waits(terminal: Terminal, { wait, json }: WaitOptions): boolean {
  return wait ?? (terminal.outputIsInteractive && json !== true);
}

/** @param path of the resource. */
export async function newestEvent(host: Platform, path: string): Promise<string> {
  const { events } = await callJson(host, { path: `${path}/events?pageSize=1` }, newestSchema);
  return events[0]?.id ?? "";
}

const newestSchema = z.object({ events: z.array(z.object({ id: z.string() })) });

/** @returns the resource as it was wanted. @throws CliError where that is given up; Interrupted after Ctrl-C, which ends the looking alone */
export function watch<T, E extends HistoryEvent>(context: Watcher, host: Platform, watched: Watch<T, E>): Promise<T> {
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

/** Until it is there no more. @throws Interrupted after Ctrl-C, which ends the looking alone */
export async function watchDeletion<T, E extends HistoryEvent>(
  context: Watcher,
  host: Platform,
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

/** Null: there is none. */
export function find<T>(host: Platform, { path, schema }: Pick<Watch<T, never>, "path" | "schema">): Promise<T | null> {
  return callJson(host, { path }, schema).catch(unlessGone);
}

function unlessGone(error: unknown): null {
  if (error instanceof Refused && error.code === "not_found") return null;
  throw error;
}

type Watcher = Pick<Context, "terminal" | "clock">;

/** Looks until there is something to return; a platform that does not answer for a while is waited for. */
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
        if (silentSince === null) terminal.note("the platform does not answer; looking again until it does");
        silentSince ??= clock.monotonic();
      }
      await delay(LOOK_MS, undefined, { signal: stop.signal });
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    terminal.note(`not waiting any more; it goes on. Look again with ${watched.lookAgain}.`);
    throw new Interrupted();
  } finally {
    release();
  }
}

function isAway(error: unknown): boolean {
  return error instanceof Unanswered || (error instanceof Refused && error.code === "unavailable");
}

function outOfTime(seconds: number, lookAgain: string): string {
  return `It has not come there in ${seconds} s, and goes on. Look again with ${lookAgain}.`;
}

/** Oldest first. Ids grow with time. */
async function eventsSince<E extends HistoryEvent>(
  host: Platform,
  { path, event }: Pick<Watch<unknown, E>, "path" | "event">,
  after: string,
): Promise<E[]> {
  const page = z.object({ events: z.array(event) });
  const { events } = await callJson(host, { path: `${path}/events?pageSize=200` }, page);
  return events.filter(({ id }) => id > after).reverse();
}

/** Says each thing once. */
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
    // What just happened is often also how it stands now.
    const more = progress.filter((each) => !this.#told.includes(each) && !said.some((line) => each.endsWith(line)));
    for (const line of [...said, ...more]) this.#terminal.note(visible(line));
    this.#latest = news.at(-1)?.id ?? this.#latest;
    this.#told = [...progress, ...said];
  }
}

/** @param state that was entered; null: none. */
export function lineOf(state: string | null, message: string): string {
  return state === null ? message : `${state}: ${message}`;
}

/** A pull is told of in steps of so many percent. */
const PERCENT_STEP = 10;

export function stepOf(percent: number): string {
  return `${Math.floor(percent / PERCENT_STEP) * PERCENT_STEP} %`;
}
