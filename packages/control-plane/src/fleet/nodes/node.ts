import type { Condition } from "@fairlead/protocol/conditions";
import type { DaemonUpdate } from "@fairlead/protocol/daemon-updates";
import type { EngineConfig } from "@fairlead/protocol/engine-config";
import type { SealingPublicKey, SigningPublicKey } from "@fairlead/protocol/enrollment";
import type { NodeStatus } from "@fairlead/protocol/resources";
import { withoutTrailing } from "@fairlead/protocol/values/text";
import type { AuditResource } from "../../access/audit/audit.ts";

/** A node as services use it. Times are Unix milliseconds. */
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
  /** Null: no engine configured. */
  readonly engineConfig: EngineConfig | null;
  readonly signingKey: SigningPublicKey | null;
  readonly sealingKey: SealingPublicKey | null;
  readonly enrolledAt: number | null;
  readonly daemonVersion: string;
  /** Progress of its last update, as reported by the daemon. */
  readonly daemonUpdate: DaemonUpdate | null;
  readonly lastSeenAt: number | null;
  readonly conditions: readonly Condition[];
  /** While draining: how long to wait for its running calls. */
  readonly drainUntil: number | null;
  /** Number of requested engine restarts. */
  readonly restarts: number;
  readonly createdAt: number;
}

/** Values of a node whose daemon has not enrolled yet. */
export const NEW_NODE = {
  publicIp: "",
  operatingSystem: "",
  connectors: [],
  signingKey: null,
  sealingKey: null,
  enrolledAt: null,
  daemonVersion: "",
  daemonUpdate: null,
  lastSeenAt: null,
  conditions: [],
  drainUntil: null,
  restarts: 0,
} as const satisfies Partial<NodeRecord>;

/** A machine that the user already has. */
export const PLAN_BYO = "byo";

/** The node as it appears in the audit log. */
export function nodeResource({ id, name }: Pick<NodeRecord, "id" | "name">): AuditResource {
  return { type: "node", id, name };
}

const IDENTIFIER_LENGTH = 40;

/** The name as a slug `[a-z0-9-]{1,40}`, the provider part of the node's model names. */
export function identifierFrom(name: string): string {
  const slug = withoutTrailing(
    name
      .normalize("NFKD")
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, "-")
      .slice(0, IDENTIFIER_LENGTH)
      .replace(/^-+/, ""),
    "-",
  );
  return slug === "" ? "node" : slug;
}

/** The first free one of `slug`, `slug-2`, `slug-3`…. */
export function freeIdentifier(slug: string, taken: ReadonlySet<string>): string {
  for (let n = 1; ; n++) {
    const suffix = n === 1 ? "" : `-${n}`;
    const candidate = withoutTrailing(slug.slice(0, IDENTIFIER_LENGTH - suffix.length), "-") + suffix;
    if (!taken.has(candidate)) return candidate;
  }
}
