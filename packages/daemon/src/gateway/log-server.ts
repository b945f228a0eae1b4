import { TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import type { ErrorCode } from "@fairlead/protocol/errors";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import { sleep, type Timers } from "../process/timers.ts";
import type { ContainerRuntime, LogLine, LogOptions } from "../runtime/container-runtime.ts";
import type { IncomingCall, IncomingCallHandler, TunnelCallHandler } from "../tunnel/tunnel-call.ts";

/** One run of a workload's container. */
export interface LogSource {
  readonly id: string;
  readonly running: boolean;
  readonly startedAt: string | null;
}

export interface LogServerDeps {
  /** Updated by the reconcile loop. @returns null for a workload without a container. */
  readonly find: (workload: string) => LogSource | null;
  readonly runtime: Pick<ContainerRuntime, "followLogs">;
  readonly timers: Timers;
  readonly log: DaemonLog;
}

const LOOK_MS = 500;

/**
 * Serves a workload's logs: `/{workload}?follow=&since=&tail=`, one JSON object per line. Reads from the container engine with
 * backpressure and stops when the client disconnects.
 */
export function createLogServer(deps: LogServerDeps): IncomingCallHandler {
  return (call) => {
    serve(call, deps).catch((error: unknown) => {
      if (call.isClosed) return;
      deps.log.warn({ reason: reasonOf(error) }, "could not read the logs of a workload");
      if (call.isAnswered) call.break(new Error("could not read the logs"));
      else refuse(call, "unavailable");
    });
  };
}

async function serve(call: IncomingCall, deps: LogServerDeps): Promise<void> {
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

/** The client; its request body is ignored. */
class LogCaller implements TunnelCallHandler {
  readonly #left = new AbortController();
  #goOn: (() => void) | undefined;

  /** Aborts when the client disconnects. */
  get signal(): AbortSignal {
    return this.#left.signal;
  }

  /** Resolves when more can be written or the client has disconnected. */
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

/** Follows the workload across crashes, restarts and updates. */
async function* outputOf(first: LogSource, reading: Reading): AsyncIterable<LogLine> {
  const { options, deps, signal } = reading;
  let source: LogSource | null = first;
  let asked = options;
  /** Lines already sent for this container. */
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

/** @param broken reading failed, but the run may continue. @returns null if the client has disconnected. */
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

function refuse(call: IncomingCall, code: ErrorCode): void {
  if (call.isClosed) return;
  call.respond(503, { [TUNNEL_FAULT_HEADER]: code });
  call.end();
}
