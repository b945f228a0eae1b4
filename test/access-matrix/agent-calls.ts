import { z } from "zod";
import { type Call, type MakeCall, SECRET } from "./call.ts";
import type { World } from "./world.ts";

/** How the routes of agents are called. */

const created = z.object({ agent: z.object({ id: z.string() }) });

const body = ({ projectId, node }: World, nodeId = node.id): Record<string, unknown> => ({
  projectId,
  name: "Night shift",
  guest: "fairlead-demo-agent",
  runtimeProvider: `node:${nodeId}`,
  config: { env: { API_TOKEN: SECRET } },
});

const AGENTS_PER_NODE = 100;
const hosts = new WeakMap<World, { readonly nodeId: string; agents: number }>();

/** A node for one more agent: each takes a limited number. */
async function hostOf(world: World): Promise<string> {
  let host = hosts.get(world);
  if (host === undefined || host.agents === AGENTS_PER_NODE)
    host = { nodeId: (await world.enrolledNode()).id, agents: 0 };
  host.agents += 1;
  hosts.set(world, host);
  return host.nodeId;
}

/** An agent that no other cell touches. */
const newAgent =
  (rest = "", more: Omit<Call, "path"> = {}): MakeCall =>
  async (world) => {
    const call = { method: "POST", path: "/v1/agents", body: body(world, await hostOf(world)) };
    const { agent } = await world.send(call, created);
    return { path: `/v1/agents/${agent.id}${rest}`, ...more };
  };

const started: MakeCall = async (world, caller) => {
  const { path } = await newAgent()(world, caller);
  await world.send({ method: "POST", path: `${path}:start`, body: {} }, z.object({}));
  return { path: `${path}:stop`, body: {} };
};

const withSecret: MakeCall = async (world, caller) => {
  const { path } = await newAgent("/secrets/MATRIX")(world, caller);
  await world.send({ method: "PUT", path, body: { value: "x" } }, z.object({}));
  return { path };
};

export const AGENT_CALLS: Readonly<Record<string, MakeCall>> = {
  "GET /v1/agents": ({ projectId }) => ({ path: `/v1/agents?projectId=${projectId}` }),
  "POST /v1/agents": (world) => ({ path: "/v1/agents", body: body(world) }),
  "DELETE /v1/agents/{id}": newAgent(),
  "GET /v1/agents/{id}": newAgent(),
  "PATCH /v1/agents/{id}": newAgent("", { body: { config: { env: { API_TOKEN: SECRET, MORE: "1" } } } }),
  "POST /v1/agents/{id}:start": newAgent(":start", { body: {} }),
  "POST /v1/agents/{id}:stop": started,
  "GET /v1/agents/{id}/config": newAgent("/config"),
  "GET /v1/agents/{id}/connect": newAgent("/connect", { letIn: ['"code":"no_running_engine"'] }),
  "GET /v1/agents/{id}/events": newAgent("/events"),
  "GET /v1/agents/{id}/limits": newAgent("/limits"),
  "GET /v1/agents/{id}/logs": newAgent("/logs", { letIn: ['"code":"unavailable"'] }),
  "PATCH /v1/agents/{id}/limits": newAgent("/limits", { body: { parallelCalls: 4 } }),
  "GET /v1/agents/{id}/secrets": newAgent("/secrets"),
  "DELETE /v1/agents/{id}/secrets/{name}": withSecret,
  "PUT /v1/agents/{id}/secrets/{name}": newAgent("/secrets/MATRIX", { body: { value: SECRET } }),
  "GET /v1/connectors": ({ projectId }) => ({ path: `/v1/connectors?projectId=${projectId}` }),
};
