import { afterEach, describe, expect, test } from "vitest";
import { run } from "../../testing/run.ts";
import { type Answer, type StubHost, startStubHost } from "../../testing/stub-host.ts";

const node = {
  id: "nod_1",
  userId: "usr_1",
  projectId: "prj_1",
  status: "active",
  name: "Attic",
  identifier: "attic",
  publicIp: "",
  directSecrets: false,
  connectors: [],
  engineConfig: {},
  createdAt: "2030-01-01T00:00:00.000Z",
  operatingSystem: "Debian 12",
  statusMessage: "all workloads are ready",
  planId: "byo",
  conditions: [],
  statusSince: "2030-01-01T00:00:00.000Z",
  daemonVersion: "1.2.3",
  desiredDaemonVersion: null,
  daemonUpdate: null,
  lastSeenAt: null,
  workloads: [],
};
let host: StubHost | undefined;
afterEach(() => host?.close());

async function call(argv: readonly string[], answers: Record<string, Answer>): ReturnType<typeof run> {
  host = await startStubHost(answers);
  const env = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
  return run(argv, { env });
}

describe("calls to the platform host", () => {
  test("node list shows the identifier, status and reason of every node in the project", async () => {
    const result = await call(["node", "list"], { "GET /v1/nodes": { body: { nodes: [node], nextPageToken: "" } } });
    expect(result.code).toBe(0);
    expect(result.out).toMatch(/ID +IDENTIFIER +STATUS/);
    expect(result.out).toMatch(/nod_1 +attic +active +Debian 12 +all workloads are ready\n/);
    expect(host?.seen[0]).toMatchObject({ url: "/v1/nodes?projectId=prj_1&pageSize=200", authorization: "Bearer tok" });
  });

  test("node list fetches all pages", async () => {
    const first = { nodes: [node], nextPageToken: "more" };
    const answers = [first, { nodes: [{ ...node, id: "nod_2" }], nextPageToken: null }];
    const result = await call(["node", "list", "--json"], {
      "GET /v1/nodes": (response) => void response.end(JSON.stringify(answers.shift())),
    });
    expect(JSON.parse(result.out)).toEqual({ nodes: [node, { ...node, id: "nod_2" }] });
    expect(host?.seen[1]?.url).toBe("/v1/nodes?projectId=prj_1&pageSize=200&pageToken=more");
  });

  test("node list says how to create a node when the project has none", async () => {
    const result = await call(["node", "list"], { "GET /v1/nodes": { body: { nodes: [] } } });
    expect(result.out).toContain("fairlead node create");
  });

  test("node create sends the plan byo and the preset", async () => {
    const result = await call(["node", "create", "Attic", "--preset", "fairlead-demo"], {
      "POST /v1/nodes": { body: { node } },
    });
    expect(result.code).toBe(0);
    expect(host?.seen[0]?.body).toEqual({
      projectId: "prj_1",
      planId: "byo",
      name: "Attic",
      engineConfig: { preset: "fairlead-demo" },
    });
  });

  test("node create rejects an unknown preset as a usage error", async () => {
    const result = await run(["node", "create", "Attic", "--preset", "magic"]);
    expect(result).toMatchObject({ code: 2, notes: expect.stringContaining("fairlead-demo") });
  });

  test("node bootstrap-token prints only the token to standard output", async () => {
    const result = await call(["node", "bootstrap-token", "nod_1"], {
      "POST /v1/nodes/nod_1/bootstrap-tokens": { body: { token: "flb_x", expiresAt: node.createdAt } },
    });
    expect(result).toMatchObject({ code: 0, out: "flb_x\n" });
  });
});

describe("failures", () => {
  test("an error shows the host's message, its code and the request ID", async () => {
    const error = { message: "No such node.", code: "not_found", requestId: "req_7" };
    const result = await call(["node", "get", "nod_9"], { "GET /v1/nodes/nod_9": { status: 404, body: { error } } });
    expect(result).toMatchObject({ code: 1, notes: "fairlead: No such node. (not_found, req_7)\n" });
  });

  test("an expired token says how to get a new one", async () => {
    const error = { message: "The token has run out.", code: "expired_credential", requestId: "req_7" };
    const result = await call(["node", "list"], { "GET /v1/nodes": { status: 401, body: { error } } });
    expect(result.notes).toContain("`unset FAIRLEAD_TOKEN`");
  });

  test("a response that is not Fairlead's is reported as such", async () => {
    const page = await call(["node", "list"], { "GET /v1/nodes": (response) => void response.end("<html>") });
    expect(page).toMatchObject({ code: 1, notes: expect.stringContaining("did not return JSON") });
    host?.close();
    const other = await call(["node", "list"], { "GET /v1/nodes": { body: {} } });
    expect(other.notes).toContain("invalid response (nodes)");
  });

  test("an unreachable host is named, with what to check", async () => {
    const silent = await startStubHost({});
    silent.close();
    const env = { FAIRLEAD_BASE_URL: silent.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
    expect(await run(["node", "list"], { env })).toMatchObject({
      code: 1,
      notes: expect.stringMatching(/Cannot reach the platform host at .*FAIRLEAD_BASE_URL is correct/),
    });
  });

  test("a command without a token or a login says to run fairlead login", async () => {
    const result = await run(["node", "get", "nod_1"]);
    expect(result).toMatchObject({ code: 1, notes: expect.stringMatching(/not signed in.*Run `fairlead login/) });
  });

  test("an unknown command is a usage error, and --help is not", async () => {
    expect((await run(["nodes"])).code).toBe(2);
    const help = await run(["node", "list", "--help"]);
    expect(help).toMatchObject({ code: 0, out: expect.stringContaining("Examples:") });
    expect(await run(["--version"])).toMatchObject({ code: 0, out: "1.2.3 (development)\n" });
  });
});
