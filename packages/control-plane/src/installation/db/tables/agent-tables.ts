/** Rows of agents and their history; `schema.ts` describes the storage format. */

export interface AgentTable {
  id: string;
  project_id: string;
  user_id: string;
  name: string;
  guest: string;
  /** Target node. Not a foreign key, because the agent outlives the node. */
  node_id: string;
  /** JSON. */
  connector_slugs: string;
  /** JSON. */
  config: string;
  /** JSON; omitted fields are unlimited. */
  limits: string;
  /** The last request: 1 for `:start`, 0 for `:stop`. */
  wanted: number;
  /** Incremented on every start and move: credentials of an earlier run are invalid. */
  run: number;
  /** The node whose desired state includes it, or that has not yet reported it removed. */
  placed_node_id: string | null;
  /** The first generation of the desired state with this run. */
  placed_generation: number | null;
  /** The first generation without it; null while it should run there. */
  release_generation: number | null;
  lifecycle_state: string;
  lifecycle_since: number;
  /** JSON: the observed state and its reason. */
  observed: string;
  created_at: number;
  updated_at: number;
}

export interface AgentEventTable {
  id: string;
  agent_id: string;
  /** Node ID and the daemon's event ID, to detect repeats. Null for the server's own events. */
  source_id: string | null;
  at: number;
  kind: string;
  /** Set if the agent entered a new state. */
  lifecycle_state: string | null;
  message: string;
}
