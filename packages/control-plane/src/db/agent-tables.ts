/** Rows of agents and of what happened to them; `schema.ts` says how rows rest. */

export interface AgentTable {
  id: string;
  project_id: string;
  user_id: string;
  name: string;
  guest: string;
  /** Where it is to run. Refers to nothing, since it outlives the node. */
  node_id: string;
  /** JSON. */
  connector_slugs: string;
  /** JSON. */
  config: string;
  /** JSON; what it does not name is no limit. */
  limits: string;
  /** What people last asked for: 1 by `:start`, 0 by `:stop`. */
  wanted: number;
  /** Grows with every start of it, a move included: what was issued for an earlier run is void. */
  run: number;
  /** Whose desired state has it, or had it and has not yet reported it gone. */
  placed_node_id: string | null;
  /** The generation of that desired state which first had this run. */
  placed_generation: number | null;
  /** The generation that no longer has it; null while it is to run there. */
  release_generation: number | null;
  lifecycle_state: string;
  lifecycle_since: number;
  /** JSON: what was last seen of it, and why it is in its state. */
  observed: string;
  created_at: number;
  updated_at: number;
}

export interface AgentEventTable {
  id: string;
  agent_id: string;
  /** The daemon's own id of the event, behind the node's: a repeat is told apart by it. Null for the server's own. */
  source_id: string | null;
  at: number;
  kind: string;
  /** Set where the agent entered one. */
  lifecycle_state: string | null;
  message: string;
}
