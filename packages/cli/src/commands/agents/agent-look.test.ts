import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { agentEvent } from "../../testing/agent.ts";
import { AgentHost } from "../../testing/agent-host.ts";
import { fakeTerminal } from "../../testing/fake-terminal.ts";
import { run } from "../../testing/run.ts";
import { startStubHost } from "../../testing/stub-host.ts";

let host: AgentHost;
beforeEach(() => {
  host = new AgentHost();
});
afterEach(() => host.close());

test("events shows the history, newest last, and sends the filters", async () => {
  host.become({}, agentEvent({ id: "evt_2", kind: "reported_ready", lifecycleState: "running", message: "Ready." }));
  const { out } = await host.call(["events", "Bot", "--kind", "created,reported_ready", "--since", "2030-01-01"]);
  expect(out).toMatch(/created +made\n.*reported_ready +running +Ready\.\n$/);
  const asked = new URLSearchParams(host.seen.at(-1)?.url.split("?")[1]);
  expect(asked.get("kind")).toBe("created,reported_ready");
  expect(asked.get("since")).toBe("2030-01-01T00:00:00.000Z");
});

test("logs follows the agent's output and replaces control characters", async () => {
  const line = { at: "2030-01-01T00:00:00.000Z", stream: "stdout", text: "\u001b[31mhello" };
  const { code, out } = await host.call(["logs", "agt_1", "--follow", "--tail", "5"], {
    "GET /v1/agents/agt_1/logs": (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`data: ${JSON.stringify(line)}\n\ndata: [DONE]\n\n`);
    },
  });
  expect([code, out]).toEqual([0, "\ufffd[31mhello\n"]);
  expect(host.seen.at(-1)?.url).toBe("/v1/agents/agt_1/logs?follow=true&tail=5");
});

test("connect prints the URL and the token, or forwards a local port to the agent until Ctrl-C", async () => {
  const gateway = await startStubHost({ "GET /way/healthz": { body: { status: "ok" } } });
  const way = { gatewayUrl: `${gateway.url}/way`, authToken: "the.jwt.token" };
  const answers = { "GET /v1/agents/agt_1/connect": { body: way } };
  expect((await host.call(["connect", "agt_1"], answers)).out).toBe(`${way.gatewayUrl}\n${way.authToken}\n`);
  const terminal = fakeTerminal();
  const running = host.call(["connect", "Bot", "--port", "0", "--json"], answers, terminal);
  await vi.waitFor(() => expect(terminal.printed.out).toContain("url"));
  const { url } = JSON.parse(terminal.printed.out) as { url: string };
  expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: "ok" });
  expect(gateway.seen[0]?.authorization).toBe("Bearer the.jwt.token");
  expect(terminal.printed.notes).toContain("agent Bot");
  terminal.interrupt();
  expect((await running).code).toBe(0);
  gateway.close();
});

const limits = {
  modelAllowList: ["attic/*"],
  requestsPerMinute: null,
  tokensPerMinute: null,
  parallelCalls: null,
  budget: { total: null, daily: 2_000_000_000, monthly: null },
  spent: { total: 1_500_000_000, daily: 500_000_000, monthly: 1_500_000_000 },
};

test("limits show prints the limits and the spending; limits set changes only the given limits", async () => {
  const shown = await host.call(["limits", "show", "Bot"], { "GET /v1/agents/agt_1/limits": { body: limits } });
  expect(shown.out).toMatch(/limits +attic\/\*, .*2.* per day\nspent .*0\.5.* today, .*1\.5.* total/);
  const patch = { "PATCH /v1/agents/agt_1/limits": { body: limits } };
  await host.call(["limits", "set", "Bot", "--budget-daily", "2", "--parallel-calls", "none", "--all-models"], patch);
  expect(host.sent("PATCH")).toEqual([{ modelAllowList: null, parallelCalls: null, budget: { daily: 2_000_000_000 } }]);
  expect((await host.call(["limits", "set", "Bot"], patch)).code).toBe(2);
  expect(host.sent("PATCH")).toEqual([]);
});

describe("agent secrets", () => {
  const secret = { name: "TOKEN", version: 3, updatedAt: "2026-03-02T09:30:00.000Z", stale: true };

  test("are set from standard input and never shown", async () => {
    const put = { "PUT /v1/agents/agt_1/secrets/TOKEN": { body: secret } };
    const { code, out, notes } = await host.call(
      ["secret", "put", "Bot", "TOKEN"],
      put,
      fakeTerminal({ input: "s3cret" }),
    );
    expect([code, out]).toEqual([0, "set TOKEN, version 3\n"]);
    expect(out + notes).not.toContain("s3cret");
    expect(host.sent("PUT")).toEqual([{ value: "s3cret" }]);
  });

  test("are listed, marked if they must be set again, and deleted by name", async () => {
    const listed = await host.call(["secret", "list", "agt_1"], {
      "GET /v1/agents/agt_1/secrets": { body: { secrets: [secret] } },
    });
    expect(listed.out).toMatch(/TOKEN +3 .*stale/);
    expect(listed.notes).toContain("moved");
    const none = await host.call(["secret", "list", "agt_1"], {
      "GET /v1/agents/agt_1/secrets": { body: { secrets: [] } },
    });
    expect(none.out).toContain("fairlead agent secret put AGENT NAME");
    const gone = { "DELETE /v1/agents/agt_1/secrets/TOKEN": { body: {} } };
    expect((await host.call(["secret", "delete", "agt_1", "TOKEN"], gone)).out).toBe("deleted TOKEN\n");
  });
});

test("connector list shows which secrets each connector needs and where it finds them", async () => {
  const connectors = [
    { slug: "http", description: "An HTTP endpoint.", secrets: [{ name: "URL", as: "env" }] },
    { slug: "crm", description: "Ours.", secrets: [{ name: "KEY", as: "file", variable: "CRM_KEY_FILE" }] },
  ];
  const platform = await startStubHost({ "GET /v1/connectors": { body: { connectors } } });
  const env = { FAIRLEAD_BASE_URL: platform.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
  const { out } = await run(["connector", "list"], { env });
  expect(out).toMatch(/http +URL \(env\) +An HTTP endpoint\.\ncrm +KEY \(file CRM_KEY_FILE\) +Ours\.\n/);
  expect(platform.seen[0]?.url).toBe("/v1/connectors?projectId=prj_1");
  platform.close();
});
