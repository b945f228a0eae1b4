/** Rows of nodes and of what they are to run; `schema.ts` says how rows rest. */

export interface NodeTable {
  id: string;
  project_id: string;
  user_id: string;
  name: string;
  identifier: string;
  plan_id: string;
  status: string;
  status_message: string;
  status_since: number;
  public_ip: string;
  operating_system: string;
  direct_secrets: number;
  connectors: string;
  engine_config: string;
  /** Set when the daemon enrols; JWKs as JSON. */
  signing_key: string | null;
  sealing_key: string | null;
  enrolled_at: number | null;
  daemon_version: string;
  /** Which version of the link its daemon was last agreed on; null before the first. */
  daemon_protocol: number | null;
  last_seen_at: number | null;
  /** JSON; what the daemon last said of its machine. */
  conditions: string;
  /** Until when its running calls are waited for; null where nobody asked. */
  drain_until: number | null;
  restarts: number;
  /** JSON; how its daemon's last update stands, by its own word. */
  daemon_update: string | null;
  created_at: number;
}

/** Which daemon version is to run. The fleet's own row has neither a project nor a node. */
export interface DesiredDaemonTable {
  /** The node's or the project's id, or `fleet`. */
  id: string;
  project_id: string | null;
  node_id: string | null;
  version: string;
  requested_at: number;
}

/** A node that was deleted after it had enrolled. */
export interface DeletedNodeTable {
  id: string;
  /** A JWK as JSON. */
  signing_key: string;
  deleted_at: number;
}

/** The desired state of one node; the workloads are rendered when they change, so that a read is one row. */
export interface NodeDesiredTable {
  node_id: string;
  generation: number;
  workloads: string;
}

/** What the daemon last said of its workloads. */
export interface NodeReportTable {
  node_id: string;
  epoch: string;
  generation: number;
  reports: string;
  worker_image_digest: string;
  /** The engine's version when it was last known: it outlives the engine's stop. */
  last_version: string;
  reported_at: number;
}

export interface NodeEventTable {
  id: string;
  node_id: string;
  /** The daemon's own id of the event, behind the node's: a repeat is told apart by it. Null for the server's own. */
  source_id: string | null;
  at: number;
  kind: string;
  status: string | null;
  message: string;
}

export interface BootstrapTokenTable {
  id: string;
  node_id: string;
  /** SHA-256 (hex) of the whole token. */
  token_hash: string;
  expires_at: number;
  voided_at: number | null;
  /** The public key (JWK thumbprint) that spent it; the same key may repeat the call. */
  used_by: string | null;
  used_at: number | null;
  created_at: number;
}

/** The machine that is rented for a node: its journal, from the order to its end at the provider. */
export interface MachineTable {
  node_id: string;
  project_id: string;
  provider: string;
  type: string;
  /** The provider's names for it are unique: a second one of this name cannot be. */
  name: string;
  step: string;
  /** JSON: where to ask for it, the first now. */
  locations: string;
  /** The provider's id of it, once it is known. */
  machine_id: string | null;
  /** Sealed by the master key; null where the provider asks for none. */
  sealed_token: string | null;
  /** The bootstrap token in its user data, sealed by the master key, until it is spent. */
  sealed_bootstrap: string | null;
  bootstrap_expires_at: number | null;
  /** Since when there may be a machine whose id is not known; null: there is none. */
  attempted_at: number | null;
  deadline_at: number;
}
