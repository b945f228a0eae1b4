/** Rows of nodes and their desired state; `schema.ts` describes the storage format. */

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
  /** Set when the daemon enrolls; JWKs as JSON. */
  signing_key: string | null;
  sealing_key: string | null;
  enrolled_at: number | null;
  daemon_version: string;
  last_seen_at: number | null;
  /** JSON: the daemon's last report about its machine. */
  conditions: string;
  /** How long to wait for its running calls; null if it is not draining. */
  drain_until: number | null;
  restarts: number;
  /** JSON: progress of the daemon's last update, as it reported it. */
  daemon_update: string | null;
  created_at: number;
}

/** The wanted daemon version. The fleet-wide row has neither project nor node. */
export interface DaemonVersionTable {
  /** ID of the node or project, or `fleet`. */
  id: string;
  project_id: string | null;
  node_id: string | null;
  version: string;
  requested_at: number;
}

/** A node that was deleted after enrollment. */
export interface DeletedNodeTable {
  id: string;
  /** A JWK as JSON. */
  signing_key: string;
  deleted_at: number;
}

/** The desired state of one node. Workloads are rendered on change, so that a read is one row. */
export interface NodeDesiredTable {
  node_id: string;
  generation: number;
  workloads: string;
}

/** The daemon's last report about its workloads. */
export interface NodeReportTable {
  node_id: string;
  epoch: string;
  generation: number;
  reports: string;
  worker_image_digest: string;
  /** The engine's last known version; kept after the engine stops. */
  last_version: string;
  reported_at: number;
}

export interface NodeEventTable {
  id: string;
  node_id: string;
  /** Node ID and the daemon's event ID, to detect repeats. Null for the server's own events. */
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
  /** The public key (JWK thumbprint) that used the token; the same key may repeat the call. */
  used_by: string | null;
  used_at: number | null;
  created_at: number;
}

/** The rented machine of a node: its journal, from the order to its deletion at the provider. */
export interface MachineTable {
  node_id: string;
  project_id: string;
  provider: string;
  type: string;
  /** Unique at the provider, so that it cannot create a second machine of this name. */
  name: string;
  step: string;
  /** JSON: locations to try, the current one first. */
  locations: string;
  /** The provider's ID of the machine, once known. */
  machine_id: string | null;
  /** Sealed by the master key; null if the provider needs no token. */
  sealed_token: string | null;
  /** The bootstrap token in its user data, sealed by the master key, until it is used. */
  sealed_bootstrap: string | null;
  bootstrap_expires_at: number | null;
  /** Since when a machine with an unknown ID may exist; null: none does. */
  attempted_at: number | null;
  deadline_at: number;
}
