import { LOGS_WORKLOAD, TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import type { TunnelTransport } from "@fairlead/wire/tunnel-transport";
import type { SignInSessions } from "../../../access/auth/authenticate.ts";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import { type LogHead, NodeLogStream } from "./node-log-stream.ts";

export interface WorkloadLogsDeps {
  readonly sessions: SignInSessions;
  /** Access to daemons' services. */
  readonly daemons: { toDaemon(nodeId: string): TunnelTransport | null };
  /** For tests. Milliseconds. */
  readonly headMs?: number;
}

export interface LogQuery {
  readonly follow: boolean;
  /** RFC 3339. */
  readonly since?: string | undefined;
  /** Only this many of the last lines. */
  readonly tail?: number | undefined;
}

/** One workload and its facts. */
export interface LoggedWorkload {
  readonly nodeId: string;
  /** Its name on the node. */
  readonly name: string;
  /** Called before and repeatedly during the read. @throws DomainError if the caller has no permission */
  readonly confirm: () => Promise<void>;
  /** Called once its daemon has started to respond. */
  readonly record: () => Promise<void>;
  /** Messages for no logs and an unreachable daemon. */
  readonly noContainer: string;
  readonly unreachable: string;
}

/** Interval for rechecking permissions, so that revocations take effect within a second. */
const CONFIRM_MS = 1000;
const MAX_OPEN = 500;
/** A slow node must leave room for the logs of others. */
const MAX_OPEN_PER_NODE = 32;
/** How long a daemon may take to start. */
const HEAD_MS = 30_000;
const RETRY_SECONDS = 5;

/** Reads workload logs from daemons. Nothing is stored. */
export class WorkloadLogs {
  readonly #deps: WorkloadLogsDeps;
  /** With the node of each. */
  readonly #open = new Map<NodeLogStream, string>();

  constructor(deps: WorkloadLogsDeps) {
    this.#deps = deps;
  }

  /**
   * @returns JSON lines of `{at, stream, text}`, once the daemon has started to respond. The reader must destroy the stream.
   * @throws DomainError no_running_engine, unavailable, overloaded, and errors of `confirm`
   */
  async open(caller: UserPrincipal, workload: LoggedWorkload, query: LogQuery): Promise<NodeLogStream> {
    await workload.confirm();
    const lines = this.#begin(workload, query);
    try {
      checkHead(workload, await headOf(lines, this.#deps.headMs ?? HEAD_MS));
      await workload.record();
      if (lines.errored !== null) throw lines.errored;
    } catch (error) {
      lines.destroy();
      throw error instanceof DomainError ? error : unreachable(workload, error);
    }
    this.#watchRight(lines, caller, workload);
    return lines;
  }

  /** Ends all reads. */
  close(): void {
    for (const lines of this.#open.keys()) lines.destroy();
  }

  #begin(workload: LoggedWorkload, query: LogQuery): NodeLogStream {
    const daemon = this.#deps.daemons.toDaemon(workload.nodeId);
    if (daemon === null) throw unreachable(workload);
    const ofNode = [...this.#open.values()].filter((nodeId) => nodeId === workload.nodeId).length;
    if (this.#open.size >= MAX_OPEN || ofNode >= MAX_OPEN_PER_NODE) {
      throw new DomainError("overloaded", "Too many logs are being read. Retry shortly.", {
        retryAfterSeconds: RETRY_SECONDS,
      });
    }
    const lines = new NodeLogStream();
    this.#open.set(lines, workload.nodeId);
    lines.once("close", () => this.#open.delete(lines));
    const path = pathOf(workload.name, query);
    lines.start(daemon, { workload: LOGS_WORKLOAD, method: "GET", path, headers: {}, body: [] });
    return lines;
  }

  #watchRight(lines: NodeLogStream, caller: UserPrincipal, workload: LoggedWorkload): void {
    const confirm = async (): Promise<void> => {
      try {
        await workload.confirm();
        const session = caller.sessionId === undefined ? null : await this.#deps.sessions.find(caller.sessionId);
        if (session?.userId !== caller.userId) lines.destroy();
      } catch (error) {
        // An unavailable store says nothing about permissions.
        if (error instanceof DomainError) lines.destroy();
      }
    };
    const timer = setInterval(() => void confirm(), CONFIRM_MS).unref();
    lines.once("close", () => clearInterval(timer));
    if (lines.destroyed) clearInterval(timer);
  }
}

/** @throws Error if the daemon takes too long */
async function headOf(lines: NodeLogStream, ms: number): Promise<LogHead> {
  const timer = setTimeout(() => lines.destroy(new Error(`the daemon did not respond within ${ms} ms`)), ms);
  try {
    return await lines.head;
  } finally {
    clearTimeout(timer);
  }
}

function pathOf(name: string, { follow, since, tail }: LogQuery): string {
  const query = new URLSearchParams({ follow: String(follow) });
  if (since !== undefined) query.set("since", since);
  if (tail !== undefined) query.set("tail", String(tail));
  return `/${encodeURIComponent(name)}?${query.toString()}`;
}

function checkHead(workload: LoggedWorkload, { status, headers }: LogHead): void {
  if (status === 200) return;
  if (headers[TUNNEL_FAULT_HEADER] !== "no_running_engine") throw unreachable(workload);
  throw new DomainError("no_running_engine", workload.noContainer, { retryAfterSeconds: RETRY_SECONDS });
}

function unreachable(workload: LoggedWorkload, cause?: unknown): DomainError {
  return new DomainError("unavailable", workload.unreachable, { retryAfterSeconds: RETRY_SECONDS, cause });
}
