import { TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import type { ErrorCode } from "@fairlead/protocol/errors";
import { type Log, reasonOf } from "../log.ts";
import type { ContainerRuntime, LogLine, LogOptions } from "../runtime/container-runtime.ts";
import { sleep, type Timers } from "../timers.ts";
import type { TunnelCall, TunnelCallHandler, TunnelHandler } from "../tunnel/tunnel-call.ts";

/** One run of a container whose output is a workload's. */
export interface LogSource {
  readonly id: string;
  readonly running: boolean;
  readonly startedAt: string | null;
}

export interface LogServerDeps {
  /** Kept up to date by the reconcile loop. @returns null for a workload that has no container. */
  readonly find: (workload: string) => LogSource | null;
  readonly runtime: Pick<ContainerRuntime, "followLogs">;
  readonly timers: Timers;
  readonly log: Log;
}

const LOOK_MS = 500;

/**
 * Tells what a workload prints: `/{workload}?follow=&since=&tail=`, one JSON object a line. Reads from the container engine no
 * faster than the caller takes it, and stops when the caller leaves.
 */
export function createLogServer(deps: LogServerDeps): TunnelHandler {
  return (call) => {
    serve(call, deps).catch((error: unknown) => {
      if (call.isClosed) return;
      deps.log.warn({ reason: reasonOf(error) }, "the output of a workload could not be read");
      if (call.isAnswered) call.break(new Error("the output could not be read"));
      else refuse(call, "unavailable");
    });
  };
}

async function serve(call: TunnelCall, deps: LogServerDeps): Promise<void> {
  const caller = new LogCaller();
  call.handle(caller);
  const { workload, options } = parse(call.request.path);
  const source = deps.find(workload);
  if (source === null) {
    refuse(call, "no_running_engine");
    return;
  }
  call.respond(200, { "content-type": "application/x-ndjson" });
  const { signal } = caller;
  for await (const line of outputOf(source, { workload, options, deps, signal })) {
    if (!call.write(Buffer.from(`${JSON.stringify(line)}\n`))) await caller.drained();
    if (signal.aborted) return;
  }
  call.end();
}

/** The reader of the lines; what it says itself is not looked at. */
class LogCaller implements TunnelCallHandler {
  readonly #left = new AbortController();
  #goOn: (() => void) | undefined;

  /** Aborts when the caller leaves. */
  get signal(): AbortSignal {
    return this.#left.signal;
  }

  /** Resolves when more may be written, or the caller has left. */
  drained(): Promise<void> {
    if (this.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      this.#goOn = resolve;
    });
  }

  onData(): boolean {
    return true;
  }

  onEnd(): void {}

  onDrain(): void {
    this.#goOn?.();
  }

  onClose(): void {
    this.#left.abort();
    this.#goOn?.();
  }
}

interface Reading {
  readonly workload: string;
  readonly options: LogOptions;
  readonly deps: LogServerDeps;
  readonly signal: AbortSignal;
}

/** Followed from run to run: through crashes, restarts and updates. */
async function* outputOf(first: LogSource, reading: Reading): AsyncIterable<LogLine> {
  const { options, deps, signal } = reading;
  let source: LogSource | null = first;
  let asked = options;
  /** The lines of an earlier reading of this container. */
  let known = "";
  let latest = "";
  while (source !== null) {
    let broken = false;
    try {
      for await (const line of deps.runtime.followLogs(source.id, asked, signal)) {
        if (known !== "" && line.at <= known) continue;
        if (line.at > latest) latest = line.at;
        yield line;
      }
    } catch (error) {
      if (!options.follow) throw error;
      broken = true;
    }
    if (!options.follow) return;
    const next = await nextRun(source, broken, reading);
    const same: boolean = next?.id === source.id;
    known = same ? latest : "";
    latest = known;
    asked = { ...options, tail: null, since: same && known !== "" ? known : null };
    source = next;
  }
}

/** @param broken the run may go on, only its output could not be read. @returns null when the caller has left. */
async function nextRun(
  last: LogSource,
  broken: boolean,
  { workload, deps, signal }: Reading,
): Promise<LogSource | null> {
  while (!signal.aborted) {
    await sleep(deps.timers, LOOK_MS, signal);
    const found = deps.find(workload);
    const other = broken || found?.id !== last.id || found.startedAt !== last.startedAt;
    if (found?.running && other) return found;
  }
  return null;
}

function parse(path: string): { readonly workload: string; readonly options: LogOptions } {
  const { pathname, searchParams } = new URL(path, "http://node");
  const tail = searchParams.get("tail");
  return {
    workload: decodeURIComponent(pathname.slice(1)),
    options: {
      follow: searchParams.get("follow") === "true",
      since: searchParams.get("since"),
      tail: tail === null ? null : Number(tail),
    },
  };
}

function refuse(call: TunnelCall, code: ErrorCode): void {
  if (call.isClosed) return;
  call.respond(503, { [TUNNEL_FAULT_HEADER]: code });
  call.end();
}
