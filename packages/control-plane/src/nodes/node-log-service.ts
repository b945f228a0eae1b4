import { LOGS_WORKLOAD, TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import type { Kysely } from "kysely";
import type { AuditService } from "../audit/audit-service.ts";
import type { ProjectAccess } from "../auth/access.ts";
import type { SignInSessions } from "../auth/authenticate.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import type { Database } from "../db/schema.ts";
import type { TunnelTransport } from "../tunnel/tunnel-transport.ts";
import { type NodeRecord, nodeResource } from "./node.ts";
import { type LogHead, NodeLogStream } from "./node-log-stream.ts";
import type { NodeService } from "./node-service.ts";

export interface NodeLogDeps {
  readonly db: Kysely<Database>;
  readonly nodes: Pick<NodeService, "get">;
  readonly access: ProjectAccess;
  readonly sessions: SignInSessions;
  readonly audit: AuditService;
  /** The ways to daemons' own services. */
  readonly daemons: { toDaemon(nodeId: string): TunnelTransport | null };
}

export interface LogQuery {
  readonly workload: string;
  readonly follow: boolean;
  /** RFC 3339. */
  readonly since?: string | undefined;
  /** So many of the last lines. */
  readonly tail?: number | undefined;
}

/** The right to what is read is asked again and again (design §5: within a second). */
const CONFIRM_MS = 1000;
const MAX_OPEN = 500;
const RETRY_SECONDS = 5;

/** `GET /v1/nodes/{id}/logs`: what a node's engine prints, read from its daemon. Nothing of it is kept here. */
export class NodeLogService {
  readonly #deps: NodeLogDeps;
  readonly #open = new Set<NodeLogStream>();

  constructor(deps: NodeLogDeps) {
    this.#deps = deps;
  }

  /**
   * @returns JSON lines of `{at, stream, text}`, once the daemon has begun to answer; whoever reads them destroys them.
   * @throws DomainError not_found, permission_denied, no_running_engine, unavailable, overloaded
   */
  async open(caller: UserPrincipal, id: string, query: LogQuery): Promise<NodeLogStream> {
    const node = await this.#deps.nodes.get(caller, id);
    await this.#deps.access.require(caller, node.projectId, "node.logs");
    const lines = this.#begin(node, query);
    try {
      checkHead(node, await lines.head);
      await this.#record(caller, node);
    } catch (error) {
      lines.destroy();
      throw error instanceof DomainError ? error : unreachable(node, error);
    }
    this.#watchRight(lines, caller, node);
    return lines;
  }

  /** Ends all that is read. */
  close(): void {
    for (const lines of this.#open) lines.destroy();
  }

  #begin(node: NodeRecord, query: LogQuery): NodeLogStream {
    const daemon = this.#deps.daemons.toDaemon(node.id);
    if (daemon === null) throw unreachable(node);
    if (this.#open.size >= MAX_OPEN) {
      throw new DomainError("overloaded", "Too many logs are being read just now.", {
        retryAfterSeconds: RETRY_SECONDS,
      });
    }
    const lines = new NodeLogStream();
    this.#open.add(lines);
    lines.once("close", () => this.#open.delete(lines));
    lines.start(daemon, { workload: LOGS_WORKLOAD, method: "GET", path: pathOf(query), headers: {}, body: [] });
    return lines;
  }

  #watchRight(lines: NodeLogStream, caller: UserPrincipal, { id, projectId }: NodeRecord): void {
    const confirm = async (): Promise<void> => {
      try {
        await this.#deps.nodes.get(caller, id);
        await this.#deps.access.require(caller, projectId, "node.logs");
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

  async #record(actor: UserPrincipal, node: NodeRecord): Promise<void> {
    const { db, audit } = this.#deps;
    await audit.record(db, { actor, action: "node.logs", projectId: node.projectId, resource: nodeResource(node) });
  }
}

function pathOf({ workload, follow, since, tail }: LogQuery): string {
  const query = new URLSearchParams({ follow: String(follow) });
  if (since !== undefined) query.set("since", since);
  if (tail !== undefined) query.set("tail", String(tail));
  return `/${encodeURIComponent(workload)}?${query.toString()}`;
}

function checkHead(node: NodeRecord, { status, headers }: LogHead): void {
  if (status === 200) return;
  if (headers[TUNNEL_FAULT_HEADER] === "no_running_engine") {
    const message = `There is no container of this node's engine whose output could be shown; the node is ${node.status}.`;
    throw new DomainError("no_running_engine", message, { retryAfterSeconds: RETRY_SECONDS });
  }
  throw unreachable(node);
}

function unreachable({ status }: NodeRecord, cause?: unknown): DomainError {
  const message = `The node's daemon cannot be reached just now; the node is ${status}.`;
  return new DomainError("unavailable", message, { retryAfterSeconds: RETRY_SECONDS, cause });
}
