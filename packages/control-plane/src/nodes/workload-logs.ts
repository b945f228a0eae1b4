import { LOGS_WORKLOAD, TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import type { SignInSessions } from "../auth/authenticate.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import type { TunnelTransport } from "../tunnel/tunnel-transport.ts";
import { type LogHead, NodeLogStream } from "./node-log-stream.ts";

export interface WorkloadLogsDeps {
  readonly sessions: SignInSessions;
  /** The ways to daemons' own services. */
  readonly daemons: { toDaemon(nodeId: string): TunnelTransport | null };
}

export interface LogQuery {
  readonly follow: boolean;
  /** RFC 3339. */
  readonly since?: string | undefined;
  /** So many of the last lines. */
  readonly tail?: number | undefined;
}

/** One workload, and what its room knows of it. */
export interface LoggedWorkload {
  readonly nodeId: string;
  /** Its name on the node. */
  readonly name: string;
  /** Asked before, and again and again while it is read. @throws DomainError where the caller may not read it, or no more */
  readonly confirm: () => Promise<void>;
  /** Called once its daemon has begun to answer. */
  readonly record: () => Promise<void>;
  /** For people: why there is nothing to show, and why nothing can be asked. */
  readonly noContainer: string;
  readonly unreachable: string;
}

/** The right to what is read is asked again and again (design §5: within a second). */
const CONFIRM_MS = 1000;
const MAX_OPEN = 500;
const RETRY_SECONDS = 5;

/** What workloads print, read from their daemons. Nothing of it is kept here. */
export class WorkloadLogs {
  readonly #deps: WorkloadLogsDeps;
  readonly #open = new Set<NodeLogStream>();

  constructor(deps: WorkloadLogsDeps) {
    this.#deps = deps;
  }

  /**
   * @returns JSON lines of `{at, stream, text}`, once the daemon has begun to answer; whoever reads them destroys them.
   * @throws DomainError no_running_engine, unavailable, overloaded, and what the workload's `confirm` throws
   */
  async open(caller: UserPrincipal, workload: LoggedWorkload, query: LogQuery): Promise<NodeLogStream> {
    await workload.confirm();
    const lines = this.#begin(workload, query);
    try {
      checkHead(workload, await lines.head);
      await workload.record();
      if (lines.errored !== null) throw lines.errored;
    } catch (error) {
      lines.destroy();
      throw error instanceof DomainError ? error : unreachable(workload, error);
    }
    this.#watchRight(lines, caller, workload);
    return lines;
  }

  /** Ends all that is read. */
  close(): void {
    for (const lines of this.#open) lines.destroy();
  }

  #begin(workload: LoggedWorkload, query: LogQuery): NodeLogStream {
    const daemon = this.#deps.daemons.toDaemon(workload.nodeId);
    if (daemon === null) throw unreachable(workload);
    if (this.#open.size >= MAX_OPEN) {
      throw new DomainError("overloaded", "Too many logs are being read just now.", {
        retryAfterSeconds: RETRY_SECONDS,
      });
    }
    const lines = new NodeLogStream();
    this.#open.add(lines);
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
        // A store that is away says nothing about anybody's right.
        if (error instanceof DomainError) lines.destroy();
      }
    };
    const timer = setInterval(() => void confirm(), CONFIRM_MS).unref();
    lines.once("close", () => clearInterval(timer));
    if (lines.destroyed) clearInterval(timer);
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
