import { once } from "node:events";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import type { ErrorCode } from "@fairlead/protocol/errors";
import { type Log, reasonOf } from "../log.ts";
import type { ContainerRuntime, LogLine, LogOptions } from "../runtime/container-runtime.ts";
import { sleep, type Timers } from "../timers.ts";
import type { TunnelHandler } from "../tunnel/tunnel-server.ts";

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
  return (stream, headers) => {
    stream.on("error", (error) => deps.log.debug({ err: error }, "a stream of logs failed"));
    stream.resume();
    serve(stream, headers, deps).catch((error: unknown) => {
      if (stream.destroyed) return;
      deps.log.warn({ reason: reasonOf(error) }, "the output of a workload could not be read");
      if (stream.headersSent) stream.destroy(new Error("the output could not be read"));
      else refuse(stream, "unavailable");
    });
  };
}

async function serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, deps: LogServerDeps): Promise<void> {
  const { workload, options } = parse(headers[":path"] ?? "/");
  const source = deps.find(workload);
  if (source === null) {
    refuse(stream, "no_running_engine");
    return;
  }
  const left = new AbortController();
  stream.once("close", () => left.abort());
  stream.respond({ ":status": 200, "content-type": "application/x-ndjson" });
  const { signal } = left;
  for await (const line of outputOf(source, { workload, options, deps, signal })) {
    if (stream.write(`${JSON.stringify(line)}\n`)) continue;
    await once(stream, "drain", { signal });
  }
  stream.end();
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

function refuse(stream: ServerHttp2Stream, code: ErrorCode): void {
  if (!stream.destroyed) stream.respond({ ":status": 503, [TUNNEL_FAULT_HEADER]: code }, { endStream: true });
}
