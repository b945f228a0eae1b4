import { expect, test, vi } from "vitest";
import { fakeTerminal } from "../../testing/fake-terminal.ts";
import { run } from "../../testing/run.ts";
import { startStubHost } from "../../testing/stub-host.ts";

const ENV = { FAIRLEAD_TOKEN: "session", FAIRLEAD_PROJECT_ID: "prj_1" };
const way = { gatewayUrl: "http://127.0.0.1:1/v1/nodes/nod_1/gateway", authToken: "the.jwt.token" };
const CONNECT = "GET /v1/nodes/nod_1/workload-connect";
test("prints the URL and the token for a node's engine, by node ID or by identifier in the project", async () => {
  const host = await startStubHost({
    [CONNECT]: { body: way },
    "GET /v1/nodes/by-slug/attic": { body: { id: "nod_1", name: "Attic" } },
  });
  const env = { ...ENV, FAIRLEAD_BASE_URL: host.url };
  for (const name of ["nod_1", "attic"]) {
    const { code, out, notes } = await run(["node", "connect", name], { env });
    expect([code, out]).toEqual([0, `${way.gatewayUrl}\n${way.authToken}\n`]);
    expect(notes).toContain("15 minutes");
  }
  expect(host.seen[1]?.url).toBe("/v1/nodes/by-slug/attic?projectId=prj_1");
  const { out } = await run(["node", "connect", "nod_1", "--json"], { env });
  expect(JSON.parse(out)).toEqual(way);
  host.close();
});

test("forwards a local port until Ctrl-C", async () => {
  const host = await startStubHost({ "GET /v1/nodes/nod_1/gateway/v1/models": { body: { data: [] } } });
  const answers = { [CONNECT]: { body: { ...way, gatewayUrl: `${host.url}/v1/nodes/nod_1/gateway` } } };
  const platform = await startStubHost(answers);
  const terminal = fakeTerminal();
  const env = { ...ENV, FAIRLEAD_BASE_URL: platform.url };
  const running = run(["node", "connect", "nod_1", "--port", "0", "--json"], { env, terminal });
  await vi.waitFor(() => expect(terminal.printed.out).toContain("url"));
  const { url } = JSON.parse(terminal.printed.out) as { url: string };
  expect(await (await fetch(`${url}/v1/models`)).json()).toEqual({ data: [] });
  expect(host.seen[0]?.authorization).toBe("Bearer the.jwt.token");
  terminal.interrupt();
  expect((await running).code).toBe(0);
  await expect(fetch(url)).rejects.toThrow("fetch failed");
  host.close();
  platform.close();
});

test("reports a missing permission and an invalid port immediately", async () => {
  const error = {
    message: "Your role in this project is viewer; this takes owner or admin.",
    code: "permission_denied",
  };
  const host = await startStubHost({ [CONNECT]: { status: 403, body: { error } } });
  const env = { ...ENV, FAIRLEAD_BASE_URL: host.url };
  const refused = await run(["node", "connect", "nod_1", "--port", "0"], { env });
  expect([refused.code, refused.notes]).toEqual([1, expect.stringContaining("this takes owner or admin")]);
  for (const port of ["x", "70000", "-1", "1.5"]) {
    expect((await run(["node", "connect", "nod_1", "--port", port], { env })).code).toBe(2);
  }
  host.close();
});
