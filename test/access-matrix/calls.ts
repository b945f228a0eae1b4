import { join } from "node:path";
import { DIALECT_SPECS } from "@fairlead/dialects/dialect-specs";
import { DIALECTS } from "@fairlead/protocol/providers";
import { GATEWAY_PATH } from "@fairlead/protocol/workload-connect";
import { z } from "zod";
import { offerBuild } from "../../packages/control-plane/src/fleet/builds/offered-build.fixture.ts";
import { AGENT_CALLS } from "./agent-calls.ts";
import { at, type Call, type MakeCall, SECRET } from "./call.ts";
import { CHAT_CALLS } from "./chat-calls.ts";
import { PERSON_CALLS } from "./person-calls.ts";

/** How the routes of projects, nodes and daemons are called; those of people stand in `person-calls.ts`. */

const project =
  (rest = ""): MakeCall =>
  ({ projectId }) => ({ path: `/v1/projects/${projectId}${rest}` });
const node =
  (rest = "", more: Omit<Call, "path"> = {}): MakeCall =>
  (world) => ({
    path: `/v1/nodes/${world.node.id}${rest}`,
    ...more,
  });
const newNode =
  (rest = "", more: Omit<Call, "path"> = {}): MakeCall =>
  async (world) => ({
    path: `/v1/nodes/${(await world.createNode()).id}${rest}`,
    ...more,
  });

const living =
  (rest: string): MakeCall =>
  async (world) => ({ path: `/v1/nodes/${(await world.enrolledNode()).id}${rest}`, body: {} });

const drained: MakeCall = async (world) => {
  const path = `/v1/nodes/${(await world.enrolledNode()).id}`;
  await world.send({ method: "POST", path: `${path}:drain`, body: { timeoutSeconds: 0 } }, z.object({}));
  return { path: `${path}:resume`, body: {} };
};

const newMember =
  (more: Omit<Call, "path"> = {}): MakeCall =>
  async (world) => ({
    path: `/v1/projects/${world.projectId}/members/${await world.newMember()}`,
    ...more,
  });

/** A key that the owner made, which members may not touch. */
const newKey =
  (rest = "", more: Omit<Call, "path"> = {}): MakeCall =>
  async (world) => ({
    path: `/v1/projects/${world.projectId}/keys/${(await world.createKey()).id}${rest}`,
    ...more,
  });

/** A name that no other cell has. */
const newName = (): string => `m-${crypto.randomUUID().slice(0, 18)}`;
const newProvider = (): Record<string, unknown> => ({
  name: newName(),
  baseUrl: "https://provider.invalid/v1",
  credential: SECRET,
  models: [{ name: "large" }],
});

const madeProvider =
  (rest = "", more: Omit<Call, "path"> = {}): MakeCall =>
  async (world) => {
    const path = `/v1/projects/${world.projectId}/providers`;
    const body = newProvider();
    await world.send({ method: "POST", path, body }, z.object({}));
    return { path: `${path}/${String(body["name"])}${rest}`, ...more };
  };

const newAlias =
  (more: Omit<Call, "path"> = {}): MakeCall =>
  async (world) => {
    const path = `/v1/projects/${world.projectId}/aliases/${newName()}`;
    await world.send({ method: "PUT", path, body: { targets: ["nodes/tinychat-6m"] } }, z.object({}));
    return { path, ...more };
  };

const NO_ENGINE = { letIn: ['"code":"no_running_engine"'] };

const enroll: MakeCall = async (world, caller) => {
  const { id } = await world.createNode();
  const token = await world.bootstrapToken(id);
  const body = world.node.key.enrollRequest(id, token);
  return { path: `/v1/nodes/${id}/enroll`, body, ...(caller === "bootstrap" ? { bearer: token } : {}) };
};

const identityToken: MakeCall = ({ node: { id, key }, installationId }, caller) => {
  const now = Math.floor(Date.now() / 1000);
  const claims = { sub: id, iss: id, aud: installationId, iat: now, exp: now + 60, jti: crypto.randomUUID() };
  // Whoever is not the node has not got its key, and can only make something up.
  const assertion = caller === "node" ? key.sign(claims) : "eyJhbGciOiJFZERTQSJ9.e30.AA";
  return { path: `/v1/nodes/${id}/identity-tokens`, body: { assertion } };
};

const secret: MakeCall = async (world) => {
  const path = `/v1/nodes/${world.node.id}/secrets/MATRIX`;
  await world.send({ method: "PUT", path, body: { value: "x" } }, z.object({}));
  return { path };
};

export const PLATFORM_CALLS: Readonly<Record<string, MakeCall>> = {
  ...PERSON_CALLS,
  ...CHAT_CALLS,
  ...AGENT_CALLS,
  "GET /.well-known/jwks.json": at("/.well-known/jwks.json"),
  "GET /healthz": at("/healthz"),
  "GET /install.sh": at("/install.sh"),
  // As through a proxy: to programs on the server's own machine, as this test is one, they are open.
  "GET /metrics": () => ({ path: "/metrics", headers: { "x-forwarded-for": "192.0.2.1" } }),
  "GET /openapi.json": at("/openapi.json"),
  "GET /readyz": at("/readyz"),
  "GET /v1/audit": at("/v1/audit"),
  "GET /v1/daemon-builds": at("/v1/daemon-builds"),
  "GET /v1/daemon-builds/{file}": ({ dataDir }) => {
    const [file] = offerBuild(join(dataDir, "daemon-builds"), "1.2.3").files;
    return { path: `/v1/daemon-builds/${file?.file}` };
  },
  "GET /v1/daemon-version": at("/v1/daemon-version"),
  "PUT /v1/daemon-version": () => ({ path: "/v1/daemon-version", body: { version: null } }),
  "GET /v1/nodes": ({ projectId }) => ({ path: `/v1/nodes?projectId=${projectId}` }),
  "POST /v1/nodes": ({ projectId }) => ({ path: "/v1/nodes", body: { projectId, planId: "byo", name: "Box" } }),
  "GET /v1/nodes:count-active": ({ projectId }) => ({ path: `/v1/nodes:count-active?projectId=${projectId}` }),
  "POST /v1/nodes:sweep": ({ projectId }) => ({ path: "/v1/nodes:sweep", body: { projectId } }),
  "GET /v1/plans": () => ({ path: "/v1/plans" }),
  "POST /v1/plans:refresh": () => ({
    path: "/v1/plans:refresh",
    body: { provider: "nobody" },
    letIn: ['"param":"provider"'],
  }),
  "GET /v1/nodes/by-slug/{slug}": (world) => ({
    path: `/v1/nodes/by-slug/${world.node.identifier}?projectId=${world.projectId}`,
  }),
  "GET /v1/nodes/{id}": node(),
  "PATCH /v1/nodes/{id}": newNode("", {
    body: {
      node: { name: "Rack", engineConfig: { preset: "fairlead-demo", env: { API_TOKEN: SECRET } } },
      providerKeys: { openai: SECRET },
    },
  }),
  "DELETE /v1/nodes/{id}": newNode(),
  "POST /v1/nodes/{id}:drain": living(":drain"),
  "POST /v1/nodes/{id}:restart-workload": living(":restart-workload"),
  "POST /v1/nodes/{id}:resume": drained,
  "POST /v1/nodes/{id}/bootstrap-tokens": newNode("/bootstrap-tokens", { body: {} }),
  "GET /v1/nodes/{id}/daemon-version": node("/daemon-version"),
  "PUT /v1/nodes/{id}/daemon-version": newNode("/daemon-version", { body: { version: null } }),
  "GET /v1/nodes/{id}/engine-version": node("/engine-version", NO_ENGINE),
  "POST /v1/nodes/{id}/enroll": enroll,
  "GET /v1/nodes/{id}/events": node("/events"),
  "GET /v1/nodes/{id}/logs": node("/logs", { letIn: ['"code":"unavailable"'] }),
  "POST /v1/nodes/{id}/identity-tokens": identityToken,
  "POST /v1/nodes/{id}/ready": ({ node: { id } }) => ({
    path: `/v1/nodes/${id}/ready`,
    body: { id, workloadReports: [], operatingSystem: "Debian", workerImageDigest: "" },
  }),
  "GET /v1/nodes/{id}/workload-connect": node("/workload-connect", NO_ENGINE),
  "GET /v1/nodes/{id}/workload-version": node("/workload-version", NO_ENGINE),
  "GET /v1/nodes/{node_id}/secrets": node("/secrets"),
  "DELETE /v1/nodes/{node_id}/secrets/{name}": secret,
  "PUT /v1/nodes/{node_id}/secrets/{name}": node("/secrets/MATRIX", { body: { value: SECRET } }),
  "GET /v1/projects": at("/v1/projects"),
  "POST /v1/projects": () => ({ path: "/v1/projects", body: { name: "Matrix" } }),
  "GET /v1/projects/{id}": project(),
  "PATCH /v1/projects/{id}": ({ projectId }) => ({ path: `/v1/projects/${projectId}`, body: { name: "Renamed" } }),
  "DELETE /v1/projects/{id}": async (world) => ({
    path: `/v1/projects/${await world.createSameProject()}?confirmName=Matrix`,
  }),
  "GET /v1/projects/{id}/daemon-version": project("/daemon-version"),
  "PUT /v1/projects/{id}/daemon-version": ({ projectId }) => ({
    path: `/v1/projects/${projectId}/daemon-version`,
    body: { version: null },
  }),
  "GET /v1/projects/{id}/aliases": project("/aliases"),
  "DELETE /v1/projects/{id}/aliases/{name}": newAlias(),
  "GET /v1/projects/{id}/aliases/{name}": newAlias(),
  "PUT /v1/projects/{id}/aliases/{name}": newAlias({ body: { targets: ["nodes/other"] } }),
  "GET /v1/projects/{id}/audit": project("/audit"),
  "GET /v1/projects/{id}/balance": project("/balance"),
  "GET /v1/projects/{id}/providers": project("/providers"),
  "POST /v1/projects/{id}/providers": ({ projectId }) => ({
    path: `/v1/projects/${projectId}/providers`,
    body: newProvider(),
  }),
  "DELETE /v1/projects/{id}/providers/{name}": madeProvider(),
  "GET /v1/projects/{id}/providers/{name}": madeProvider(),
  "PATCH /v1/projects/{id}/providers/{name}": madeProvider("", {
    body: { credential: `${SECRET}-2`, discovery: true },
  }),
  "POST /v1/projects/{id}/providers/{name}:check": madeProvider(":check", { body: {} }),
  "POST /v1/projects/{id}/credits": ({ projectId }) => ({
    path: `/v1/projects/${projectId}/credits`,
    body: { amountNanoDollars: 1 },
  }),
  "GET /v1/projects/{id}/ledger": project("/ledger"),
  "GET /v1/projects/{id}/limits": project("/limits"),
  "PATCH /v1/projects/{id}/limits": ({ projectId }) => ({
    path: `/v1/projects/${projectId}/limits`,
    body: { parallelCalls: 1000 },
  }),
  "GET /v1/projects/{id}/usage": project("/usage"),
  "GET /v1/projects/{id}/usage/calls": project("/usage/calls"),
  "GET /v1/projects/{project_id}/invitations": project("/invitations"),
  "DELETE /v1/projects/{project_id}/invitations/{id}": async (world) => ({
    path: `/v1/projects/${world.projectId}/invitations/${(await world.invite()).id}`,
  }),
  "GET /v1/projects/{project_id}/members": project("/members"),
  "POST /v1/projects/{project_id}/members": ({ projectId }) => ({
    path: `/v1/projects/${projectId}/members`,
    body: { email: "invited@example.org", role: "member" },
  }),
  "DELETE /v1/projects/{project_id}/members/{user_id}": newMember(),
  "PATCH /v1/projects/{project_id}/members/{user_id}": newMember({ body: { role: "viewer" } }),
  "GET /v1/projects/{project_id}/keys": project("/keys"),
  "GET /v1/projects/{project_id}/keys/{id}": newKey(),
  "PATCH /v1/projects/{project_id}/keys/{id}": newKey("", { body: { name: "renamed" } }),
  "DELETE /v1/projects/{project_id}/keys/{id}": newKey(),
  "POST /v1/projects/{project_id}/keys/{id}:rotate": newKey(":rotate", { body: {} }),
  "POST /v1/projects/{project_id}/keys": ({ projectId }) => ({
    path: `/v1/projects/${projectId}/keys`,
    body: { name: "matrix" },
  }),
};

const model: MakeCall = ({ node: { identifier } }) => ({ path: `/v1/models/${identifier}/tinychat-6m`, ...NO_ENGINE });

export const RELAY_CALLS: Readonly<Record<string, MakeCall>> = {
  "GET /v1/nodes/{id}/gateway/{path}": ({ node: { id } }) => ({ path: `${GATEWAY_PATH(id)}/v1/models`, ...NO_ENGINE }),
};

export const INFERENCE_CALLS: Readonly<Record<string, MakeCall>> = {
  "GET /healthz": at("/healthz"),
  "GET /readyz": at("/readyz"),
  ...Object.fromEntries(DIALECTS.map((dialect) => modelCall(`/v1${DIALECT_SPECS[dialect].path}`))),
  "GET /v1/models": at("/v1/models"),
  "GET /v1/models/{model}": model,
};

/** Access depends on the model alone, so the body has no input, whatever the dialect. */
function modelCall(path: string): readonly [route: string, call: MakeCall] {
  const call: MakeCall = ({ node: { identifier } }) => ({
    path,
    body: { model: `${identifier}/tinychat-6m` },
    ...NO_ENGINE,
  });
  return [`POST ${path}`, call];
}
