import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentSecretSchema, connectorSchema } from "@fairlead/protocol/agents";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { openLocalAdmin } from "../../../installation/admin/local-admin.ts";
import { loadConfig } from "../../../installation/config/config.ts";
import { type RunningServer, startServer } from "../../../server.ts";

const CANARY = "c4nary-route-81be6d";
const OWN = { slug: "github", description: 'Issues of <b>"O\'Neill" ☂</b>', secrets: [{ name: "KEY", as: "file" }] };
const withId = z.object({ id: z.string() });
const withError = z.object({ error: z.object({ code: z.string(), param: z.string().nullable() }) });

describe("the routes of agent secrets and connectors", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "fairlead-agent-secrets-"));
  let server: RunningServer;
  let token: string;
  let projectId: string;
  let path: string;

  async function call(method: string, route: string, body?: unknown) {
    const response = await fetch(`${server.platformUrl}${route}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, text, body: JSON.parse(text) as unknown };
  }

  beforeAll(async () => {
    const config = loadConfig({
      env: {
        FAIRLEAD_DATA_DIR: dataDir,
        FAIRLEAD_SERVER_PLATFORM_PORT: "0",
        FAIRLEAD_SERVER_INFERENCE_PORT: "0",
        FAIRLEAD_LOG_LEVEL: "silent",
        FAIRLEAD_CONNECTORS: JSON.stringify([OWN]),
      },
    });
    server = await startServer(config);
    const admin = await openLocalAdmin(config);
    await admin.createUser({ email: "ann@example.org", name: "Ann", platformAdmin: false });
    token = (await admin.createToken({ email: "ann@example.org" })).token;
    await admin.close();
    const project = await call("POST", "/v1/projects", { name: "Support" });
    projectId = z.object({ project: withId }).parse(project.body).project.id;
    const node = await call("POST", "/v1/nodes", { projectId, planId: "byo", name: "Box" });
    const nodeId = z.object({ node: withId }).parse(node.body).node.id;
    const agent = { projectId, name: "Night", guest: "example/x:1", runtimeProvider: `node:${nodeId}` };
    const created = await call("POST", "/v1/agents", { ...agent, connectorSlugs: ["github"] });
    path = `/v1/agents/${z.object({ agent: withId }).parse(created.body).agent.id}/secrets`;
  });
  afterAll(async () => {
    await server?.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  test("a secret can be set, replaced, listed without its value, and deleted repeatedly", async () => {
    const first = await call("PUT", `${path}/tls.key`, { value: CANARY });
    expect(agentSecretSchema.strict().parse(first.body)).toMatchObject({ name: "tls.key", version: 1, stale: false });
    const second = await call("PUT", `${path}/tls.key`, { value: `${CANARY} 2` });
    expect(second.body).toMatchObject({ version: 2 });
    const listed = await call("GET", path);
    expect(listed.body).toEqual({ secrets: [second.body] });
    for (const { text } of [first, second, listed]) expect(text).not.toContain(CANARY);
    for (let time = 0; time < 2; time += 1) {
      expect(await call("DELETE", `${path}/tls.key`)).toMatchObject({ status: 200, body: {} });
    }
    expect((await call("GET", path)).body).toEqual({ secrets: [] });
    expect((await call("DELETE", `${path}/never`)).status).toBe(404);
  });

  test.each([
    ["an unknown field", "as", "X", { value: "x", as: CANARY }],
    ["a value that is not a string", "value", "X", { value: [CANARY] }],
    ["an empty value", "value", "X", { value: "" }],
    ["a value that is one byte too long", "value", "X", { value: CANARY.padEnd(65_535, "-").concat("é") }],
    ["the name of a hidden file", "name", ".x", { value: CANARY }],
    ["a name with a path", "name", encodeURIComponent("../../etc/passwd"), { value: CANARY }],
    ["a hostile name", "name", encodeURIComponent(`'; drop table agent; -- <b>☂`), { value: CANARY }],
    ["a name that is too long", "name", "x".repeat(129), { value: CANARY }],
    ["the key of an agent's secret as the name", "name", `agt_${"0".repeat(26)}.X`, { value: CANARY }],
  ])(
    "%s is rejected with the field's name, and the error does not contain the value",
    async (...[, param, name, body]) => {
      const answer = await call("PUT", `${path}/${name}`, body);
      expect(answer.status).toBe(400);
      expect(withError.parse(answer.body).error).toMatchObject({ code: "invalid_request", param });
      expect(answer.text).not.toContain(CANARY);
    },
  );

  test("a value of 64 KiB is accepted", async () => {
    expect((await call("PUT", `${path}/LARGE`, { value: "é".repeat(32_768) })).status).toBe(200);
  });

  test("connectors, including those of the config, are listed by slug to members of the project only", async () => {
    const { body } = await call("GET", `/v1/connectors?projectId=${projectId}`);
    const { connectors } = z.strictObject({ connectors: z.array(connectorSchema.strict()) }).parse(body);
    expect(connectors.map(({ slug }) => slug)).toEqual(["github", "http", "slack"]);
    expect(connectors[0]).toEqual(OWN);
    expect((await call("GET", `/v1/connectors?projectId=prj_${"0".repeat(26)}`)).status).toBe(404);
    expect((await call("GET", "/v1/connectors")).status).toBe(400);
  });
});
