import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { openLocalAdmin } from "../installation/admin/local-admin.ts";
import { type Config, loadConfig } from "../installation/config/config.ts";
import { type RunningServer, startServer } from "../server.ts";

const json = z.record(z.string(), z.unknown());
const operationSchema = z.looseObject({
  operationId: z.string().min(1),
  summary: z.string().min(1),
  tags: z.array(z.string()).length(1),
  security: z.array(z.record(z.string(), z.array(z.string()))),
  parameters: z.array(z.looseObject({ name: z.string(), in: z.string() })).default([]),
  responses: z.record(z.string(), z.looseObject({ description: z.string().min(1), content: json.default({}) })),
});
const documentSchema = z.looseObject({
  servers: z.array(z.object({ url: z.string() }).loose()),
  paths: z.record(z.string(), json),
  components: z.looseObject({ schemas: z.record(z.string(), json), securitySchemes: json }),
});

const requestBodySchema = z.looseObject({ required: z.boolean() });

type Operation = z.output<typeof operationSchema>;

/** As `docs/interface.md §4` prints them, and those of ours. */
const ROUTES = `
GET /.well-known/jwks.json
GET /.well-known/oauth-authorization-server
GET /.well-known/openid-configuration
GET /healthz
GET /install.sh
GET /metrics
GET /openapi.json
GET /readyz
GET /v1/agents
GET /v1/agents/{id}
GET /v1/agents/{id}/config
GET /v1/agents/{id}/connect
GET /v1/agents/{id}/events
GET /v1/agents/{id}/limits
GET /v1/agents/{id}/logs
GET /v1/agents/{id}/secrets
GET /v1/audit
GET /v1/chat/history
GET /v1/chat/sessions
GET /v1/chat/sessions/{id}
GET /v1/chat/sessions/{id}/export
GET /v1/chat/sessions/{id}/messages
GET /v1/connectors
GET /v1/daemon-builds
GET /v1/daemon-builds/{file}
GET /v1/daemon-version
GET /v1/me
GET /v1/me/sessions
GET /v1/nodes
GET /v1/nodes/by-slug/{slug}
GET /v1/nodes/{id}
GET /v1/nodes/{id}/daemon-version
GET /v1/nodes/{id}/engine-version
GET /v1/nodes/{id}/events
GET /v1/nodes/{id}/logs
GET /v1/nodes/{id}/workload-connect
GET /v1/nodes/{id}/workload-version
GET /v1/nodes/{node_id}/secrets
GET /v1/nodes:count-active
GET /v1/oauth/authorize
GET /v1/plans
GET /v1/projects
GET /v1/projects/{id}
GET /v1/projects/{id}/aliases
GET /v1/projects/{id}/aliases/{name}
GET /v1/projects/{id}/audit
GET /v1/projects/{id}/balance
GET /v1/projects/{id}/daemon-version
GET /v1/projects/{id}/ledger
GET /v1/projects/{id}/limits
GET /v1/projects/{id}/providers
GET /v1/projects/{id}/providers/{name}
GET /v1/projects/{id}/usage
GET /v1/projects/{id}/usage/calls
GET /v1/projects/{project_id}/invitations
GET /v1/projects/{project_id}/keys
GET /v1/projects/{project_id}/keys/{id}
GET /v1/projects/{project_id}/members
PUT /v1/agents/{id}/secrets/{name}
PUT /v1/daemon-version
PUT /v1/nodes/{id}/daemon-version
PUT /v1/projects/{id}/daemon-version
GET {models}/v1/models
GET {models}/v1/models/{model}
DELETE /v1/agents/{id}
DELETE /v1/agents/{id}/secrets/{name}
DELETE /v1/chat/sessions/{id}
DELETE /v1/chat/sessions/{id}/turns/{turnId}
DELETE /v1/me/sessions/{id}
DELETE /v1/nodes/{id}
DELETE /v1/nodes/{node_id}/secrets/{name}
DELETE /v1/projects/{id}
DELETE /v1/projects/{id}/aliases/{name}
DELETE /v1/projects/{id}/providers/{name}
DELETE /v1/projects/{project_id}/invitations/{id}
DELETE /v1/projects/{project_id}/keys/{id}
DELETE /v1/projects/{project_id}/members/{user_id}
PATCH /v1/agents/{id}
PATCH /v1/agents/{id}/limits
PATCH /v1/chat/sessions/{id}
PATCH /v1/me
PATCH /v1/nodes/{id}
PATCH /v1/projects/{id}
PATCH /v1/projects/{id}/limits
PATCH /v1/projects/{id}/providers/{name}
PATCH /v1/projects/{project_id}/keys/{id}
PATCH /v1/projects/{project_id}/members/{user_id}
POST /v1/agents
POST /v1/agents/{id}:start
POST /v1/agents/{id}:stop
POST /v1/chat/completions
POST /v1/chat/responses
POST /v1/chat/sessions/{id}:regenerate
POST /v1/chat/sessions/{id}:stop
POST /v1/nodes
POST /v1/nodes:sweep
POST /v1/nodes/{id}/bootstrap-tokens
POST /v1/nodes/{id}/enroll
POST /v1/nodes/{id}/identity-tokens
POST /v1/nodes/{id}/ready
POST /v1/nodes/{id}:drain
POST /v1/nodes/{id}:restart-workload
POST /v1/nodes/{id}:resume
POST /v1/oauth/device/code
POST /v1/oauth/revoke
POST /v1/oauth/token
POST /v1/plans:refresh
POST /v1/projects
POST /v1/projects/{id}/credits
POST /v1/projects/{id}/providers
POST /v1/projects/{id}/providers/{name}:check
POST /v1/projects/{project_id}/keys
POST /v1/projects/{project_id}/keys/{id}:rotate
POST /v1/projects/{project_id}/members
POST {models}/v1/chat/completions
POST {models}/v1/responses
PUT /v1/nodes/{node_id}/secrets/{name}
PUT /v1/projects/{id}/aliases/{name}
`;

/** For browsers: its answer is where to go on. */
const REDIRECT = "GET /v1/oauth/authorize";

describe("the API document", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "fairlead-document-"));
  let config: Config;
  let server: RunningServer;
  let text: string;
  let document: z.output<typeof documentSchema>;
  const operations = new Map<string, Operation>();

  beforeAll(async () => {
    const env = {
      FAIRLEAD_DATA_DIR: dataDir,
      FAIRLEAD_SERVER_PLATFORM_PORT: "0",
      FAIRLEAD_SERVER_INFERENCE_PORT: "0",
      FAIRLEAD_LOG_LEVEL: "silent",
    };
    config = loadConfig({ env });
    server = await startServer(config);
    const response = await fetch(`${server.platformUrl}/openapi.json`);
    text = await response.text();
    document = documentSchema.parse(JSON.parse(text));
    for (const [path, item] of Object.entries(document.paths)) {
      const prefix = "servers" in item ? "{models}/v1" : "";
      for (const [method, operation] of Object.entries(item)) {
        if (["servers", "parameters"].includes(method)) continue;
        operations.set(`${method.toUpperCase()} ${prefix}${path}`, operationSchema.parse(operation));
      }
    }
  });
  afterAll(async () => {
    await server.close();
    rmSync(dataDir, { recursive: true });
  });

  test("is valid OpenAPI 3.1, and every reference in it resolves", async () => {
    const validator = new Validator();
    const result = await validator.validate(json.parse(JSON.parse(text)));
    expect(result.errors ?? []).toEqual([]);
    expect(validator.version).toBe("3.1");
    for (const [, name = ""] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      expect(Object.keys(document.components.schemas)).toContain(name);
    }
  });

  test("lists every route, with the path of the interface", () => {
    expect([...operations.keys()].toSorted()).toEqual(ROUTES.trim().split("\n").toSorted());
    expect(text).not.toContain("(^");
  });

  test("describes each operation once, with its response and its errors", () => {
    const ids = [...operations.values()].map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [name, { responses }] of operations) {
      const [good = "", ...more] = Object.keys(responses).filter((status) => status < "400");
      expect(more, name).toEqual([]);
      expect(good, name).toBe(name === REDIRECT ? "302" : "200");
      const content = Object.values(responses[good]?.content ?? {});
      if (name !== REDIRECT) expect(Object.keys(json.parse(json.parse(content[0])["schema"])), name).not.toEqual([]);
      const form = / \/v1\/oauth\//.test(name) ? "OAuthError" : "Error";
      for (const [status, answer] of Object.entries(responses).filter(([status]) => status !== good)) {
        expect(answer.content, `${name} ${status}`).toMatchObject({
          "application/json": { schema: { $ref: `#/components/schemas/${form}` } },
        });
      }
      expect(Object.keys(responses), name).toContain("500");
    }
  });

  test("describes the credential of each guard, and 401 where there is one", () => {
    const kinds = (name: string): string[] => operations.get(name)?.security.flatMap(Object.keys) ?? ["?"];
    expect(kinds("POST /v1/projects")).toEqual(["sessionToken"]);
    expect(kinds("GET /v1/nodes/{id}")).toEqual(["sessionToken", "nodeIdentityToken"]);
    expect(kinds("POST /v1/nodes/{id}/ready")).toEqual(["nodeIdentityToken"]);
    expect(kinds("POST /v1/nodes/{id}/enroll")).toEqual(["bootstrapToken"]);
    expect(kinds("GET /healthz")).toEqual([]);
    expect(kinds("POST {models}/v1/chat/completions")).toEqual(["projectKey", "workerToken"]);
    for (const [name, { security, responses }] of operations) {
      if (security.length > 0) expect(Object.keys(responses), name).toContain("401");
    }
  });

  test("allows additional fields in responses, and rejects unknown ones in request bodies", () => {
    const { schemas } = document.components;
    expect(schemas["Node"]).not.toHaveProperty("additionalProperties");
    expect(operations.get("POST /v1/projects")).toMatchObject({
      requestBody: { content: { "application/json": { schema: { additionalProperties: false } } } },
    });
  });

  test("describes the headers of the inference host, including those of its errors", () => {
    for (const name of ["POST {models}/v1/chat/completions", "POST {models}/v1/responses"]) {
      const operation = operations.get(name);
      expect(operation?.parameters, name).toMatchObject([{ name: "Idempotency-Key", in: "header", required: false }]);
      const headersOf = (status: string): string[] =>
        Object.keys(json.parse(operation?.responses[status]?.["headers"]));
      const limits = ["limit", "remaining", "reset"].map((what) => `x-ratelimit-${what}-tokens`);
      const ours = ["x-fairlead-attempts", "x-fairlead-upstream", "x-fairlead-overhead-ms"];
      expect(headersOf("200"), name).toEqual(expect.arrayContaining([...limits, ...ours]));
      expect(headersOf("429"), name).toEqual(expect.arrayContaining(limits));
      expect(Object.keys(operation?.responses ?? {}), name).toEqual(
        expect.arrayContaining(["402", "409", "429", "503"]),
      );
    }
  });

  test("marks a body as required exactly where a request without one is rejected for it", async () => {
    const admin = await openLocalAdmin(config);
    await admin.createUser({ email: "ann@example.org", name: "Ann", platformAdmin: true });
    const { token } = await admin.createToken({ email: "ann@example.org" });
    await admin.close();
    const signedIn = { authorization: `Bearer ${token}` };
    const headers = { ...signedIn, "content-type": "application/json" };
    const made = await fetch(`${server.platformUrl}/v1/projects`, { method: "POST", headers, body: '{"name":"One"}' });
    const { project } = z.object({ project: z.object({ id: z.string() }) }).parse(await made.json());
    const asked: string[] = [];
    for (const [name, operation] of operations) {
      const body = requestBodySchema.safeParse(operation["requestBody"]);
      if (!body.success || !operation.security.some((scheme) => "sessionToken" in scheme)) continue;
      const [method = "", path = ""] = name.split(" ");
      const url = server.platformUrl + path.replaceAll(/\{\w+\}/g, "x");
      const response = await fetch(url, {
        method,
        headers: { ...signedIn, "service-project-id": project.id },
      });
      const isRefusedForIt = response.status === 400;
      expect([name, body.data.required], `${response.status}`).toEqual([name, isRefusedForIt]);
      asked.push(name);
    }
    expect(asked.length).toBeGreaterThan(20);
  });

  test("documents the idempotency key for creates and for a restart", () => {
    const projects = "/v1/projects";
    for (const path of [
      projects,
      `${projects}/{project_id}/keys`,
      `${projects}/{project_id}/members`,
      `${projects}/{id}/providers`,
      "/v1/nodes",
      "/v1/nodes/{id}:restart-workload",
    ]) {
      expect(operations.get(`POST ${path}`)?.parameters.map(({ name }) => name)).toContain("idempotency-key");
    }
  });
});
