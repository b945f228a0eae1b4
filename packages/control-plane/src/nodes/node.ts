import type { Condition } from "@fairlead/protocol/conditions";
import type { DaemonUpdate } from "@fairlead/protocol/daemon-updates";
import type { EngineConfig } from "@fairlead/protocol/engine-config";
import type { SealingPublicKey, SigningPublicKey } from "@fairlead/protocol/enrollment";
import type { NodeStatus } from "@fairlead/protocol/resources";
import type { AuditResource } from "../audit/audit.ts";

/** A node as the services hold it. Times are Unix milliseconds. */
export interface NodeRecord {
  readonly id: string;
  readonly projectId: string;
  readonly userId: string;
  readonly name: string;
  readonly identifier: string;
  readonly planId: string;
  readonly status: NodeStatus;
  readonly statusMessage: string;
  readonly statusSince: number;
  readonly publicIp: string;
  readonly operatingSystem: string;
  readonly directSecrets: boolean;
  readonly connectors: readonly string[];
  /** Null: no engine asked for. */
  readonly engineConfig: EngineConfig | null;
  readonly signingKey: SigningPublicKey | null;
  readonly sealingKey: SealingPublicKey | null;
  readonly enrolledAt: number | null;
  readonly daemonVersion: string;
  /** Which version of the link it was last agreed on; null before the first. */
  readonly daemonProtocol: number | null;
  /** How its last update stands, by the daemon's own word. */
  readonly daemonUpdate: DaemonUpdate | null;
  readonly lastSeenAt: number | null;
  readonly conditions: readonly Condition[];
  /** While it drains: until when its running calls are waited for. */
  readonly drainUntil: number | null;
  /** How often its engine was started anew on somebody's word. */
  readonly restarts: number;
  readonly createdAt: number;
}

/** A machine that the caller has already. */
export const PLAN_BYO = "byo";

/** The node as the audit log names it. */
export function nodeResource({ id, name }: Pick<NodeRecord, "id" | "name">): AuditResource {
  return { type: "node", id, name };
}

const IDENTIFIER_LENGTH = 40;

/** The name as a slug of `[a-z0-9-]{1,40}`: the provider part of its models' names. */
export function identifierFrom(name: string): string {
  const slug = name
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, IDENTIFIER_LENGTH)
    .replaceAll(/^-+|-+$/g, "");
  return slug === "" ? "node" : slug;
}

/** The first of `slug`, `slug-2`, `slug-3`… that is not taken. */
export function freeIdentifier(slug: string, taken: ReadonlySet<string>): string {
  for (let n = 1; ; n++) {
    const suffix = n === 1 ? "" : `-${n}`;
    const candidate = slug.slice(0, IDENTIFIER_LENGTH - suffix.length).replace(/-+$/, "") + suffix;
    if (!taken.has(candidate)) return candidate;
  }
}
