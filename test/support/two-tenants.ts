import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { NodeKey } from "../../packages/control-plane/src/fleet/nodes/node.fixture.ts";
import { openLocalAdmin } from "../../packages/control-plane/src/installation/admin/local-admin.ts";
import { loadConfig } from "../../packages/control-plane/src/installation/config/config.ts";
import { type RunningServer, startServer } from "../../packages/control-plane/src/server.ts";
import type { STORES } from "../../packages/control-plane/src/testing.fixture.ts";

/** One person's project, with everything in it that somebody else must not see. */
export interface Tenant {
  readonly token: string;
  readonly projectId: string;
  readonly nodeId: string;
  readonly identifier: string;
  readonly keyValue: string;
  readonly identityToken: string;
  readonly bootstrapToken: string;
  /** Texts that nobody else's answer may hold. */
  readonly marks: readonly string[];
}

export interface TwoTenants {
  readonly server: RunningServer;
  readonly ann: Tenant;
  readonly bob: Tenant;
  close(): Promise<void>;
}

const project = z.object({ project: z.object({ id: z.string(), userId: z.string() }) });
const key = z.object({ key: z.object({ id: z.string(), keyId: z.string(), keyValue: z.string() }) });
const node = z.object({ node: z.object({ id: z.string(), identifier: z.string() }) });
const bootstrap = z.object({ token: z.string() });
const identity = z.object({ identityToken: z.string() });

/** A control plane on a store of its own, with two projects of two people who know nothing of each other. */
export async function startTwoTenants(kind: (typeof STORES)[number]): Promise<TwoTenants> {
  const dataDir = mkdtempSync(join(tmpdir(), "fairlead-tenants-"));
  const store = await kind.openShared(dataDir);
  const env = {
    FAIRLEAD_DATA_DIR: dataDir,
    FAIRLEAD_SERVER_PLATFORM_PORT: "0",
    FAIRLEAD_SERVER_INFERENCE_PORT: "0",
    FAIRLEAD_LOG_LEVEL: "silent",
    // An attack must meet what stands behind the limits; they have tests of their own.
    FAIRLEAD_RATE_LIMITS_DAEMONS_PER_ADDRESS: "1000000",
    FAIRLEAD_RATE_LIMITS_OAUTH_CALLS_PER_ADDRESS: "1000000",
    FAIRLEAD_RATE_LIMITS_UPGRADES_PER_ADDRESS: "1000000",
    ...("url" in store.location ? { FAIRLEAD_DATABASE_URL: store.location.url } : {}),
  };
  const config = loadConfig({ env });
  const server = await startServer(config);
  const tenant = async (name: string): Promise<Tenant> => {
    const admin = await openLocalAdmin(config);
    const email = `${name}@example.org`;
    await admin.createUser({ email, name: `${name}-person`, platformAdmin: false });
    const { token } = await admin.createToken({ email });
    await admin.close();
    return fill(server.platformUrl, name, token);
  };
  return {
    server,
    ann: await tenant("ann"),
    bob: await tenant("bob"),
    close: async () => {
      await server.close();
      await store.close();
      rmSync(dataDir, { recursive: true });
    },
  };
}

async function fill(url: string, name: string, token: string): Promise<Tenant> {
  const post = async <T>(path: string, body: unknown, answer: z.ZodType<T>): Promise<T> =>
    send(`${url}${path}`, { token, method: "POST", body, answer });
  const made = await post("/v1/projects", { name: `${name}-project` }, project);
  const projectId = made.project.id;
  const { key: created } = await post(`/v1/projects/${projectId}/keys`, { name: `${name}-key` }, key);
  const engineConfig = { preset: "fairlead-demo", env: { [`${name}_ENV`]: `${name}-value` } };
  const { node: box } = await post("/v1/nodes", { projectId, planId: "byo", name: `${name}-box`, engineConfig }, node);
  const nodePath = `/v1/nodes/${box.id}`;
  const secret = { token, method: "PUT", body: { value: `${name}-secret` }, answer: z.unknown() };
  await send(`${url}${nodePath}/secrets/${name}_SECRET`, secret);
  const spent = await post(`${nodePath}/bootstrap-tokens`, {}, bootstrap);
  const body = new NodeKey().enrollRequest(box.id, spent.token);
  const enrolled = await send(`${url}${nodePath}/enroll`, {
    token: spent.token,
    method: "POST",
    body,
    answer: identity,
  });
  const { token: bootstrapToken } = await post(`${nodePath}/bootstrap-tokens`, {}, bootstrap);
  return {
    token,
    projectId,
    nodeId: box.id,
    identifier: box.identifier,
    keyValue: created.keyValue,
    identityToken: enrolled.identityToken,
    bootstrapToken,
    marks: [projectId, made.project.userId, box.id, created.id, created.keyId, `${name}-`, `${name}_`, `${name}@`],
  };
}

interface Sending<T> {
  readonly token: string;
  readonly method: string;
  readonly body: unknown;
  readonly answer: z.ZodType<T>;
}

async function send<T>(url: string, { token, method, body, answer }: Sending<T>): Promise<T> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(url, { method, headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${await response.text()}`);
  return answer.parse(await response.json());
}
