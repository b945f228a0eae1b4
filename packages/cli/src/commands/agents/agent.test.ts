import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AGENT, NODE_IDS } from "../../testing/agent.ts";
import { AgentHost } from "../../testing/agent-host.ts";
import { fakeTerminal } from "../../testing/fake-terminal.ts";

let host: AgentHost;
beforeEach(() => {
  host = new AgentHost();
});
afterEach(() => host.close());

describe("agent create", () => {
  const CREATE = "POST /v1/agents";
  const created = { [CREATE]: { body: { agent: { ...AGENT, lifecycleState: "created" } } } };

  test("sends only the given fields, and the ID of the node", async () => {
    const argv = ["create", "Bot", "--guest", "fairlead-demo-agent", "--node", "attic"];
    const { code, out, notes } = await host.call(argv, created);
    expect(code).toBe(0);
    expect(host.sent("POST")).toEqual([
      { projectId: "prj_1", name: "Bot", guest: "fairlead-demo-agent", runtimeProvider: `node:${NODE_IDS.attic}` },
    ]);
    expect(host.seen.find(({ method }) => method === "POST")?.idempotencyKey).toMatch(/^req_/);
    expect(out).toMatch(/agt_1 +Bot +created/);
    expect(notes).toContain("fairlead agent start agt_1");
  });

  test("sends connectors, config and limits; flags take precedence over the file", async () => {
    const yaml = "port: 8080\nenv: { A: file, B: file }\nsecrets: { TOKEN: { as: file } }\n";
    const flags = ["--connector", "http", "--connector", "slack", "--config", "-", "--env", "A=flag=x"];
    const argv = ["create", "Bot", "--guest", "image:1", "--node", NODE_IDS.attic, ...flags, "--budget-daily", "2"];
    const { code, out } = await host.call([...argv, "--json"], created, fakeTerminal({ input: yaml }));
    expect(code).toBe(0);
    expect(host.sent("POST")).toMatchObject([
      {
        runtimeProvider: `node:${NODE_IDS.attic}`,
        connectorSlugs: ["http", "slack"],
        config: { port: 8080, env: { A: "flag=x", B: "file" }, secrets: { TOKEN: { as: "file" } } },
        limits: { budget: { daily: 2_000_000_000 } },
      },
    ]);
    expect(JSON.parse(out)).toMatchObject({ agent: { id: "agt_1" } });
  });

  test.each([
    ["a: [", "not valid YAML or JSON"],
    ["imagee: x", "config: "],
    ["health: { probe: completion }", "config.health.probe: "],
    ["env: { TOKEN: x }\nsecrets: { TOKEN: { as: env } }", "config.secrets.TOKEN: "],
  ])("rejects the config %j, names the mistake and sends nothing", async (input, mistake) => {
    const argv = ["create", "Bot", "--guest", "image:1", "--node", NODE_IDS.attic, "--config", "-"];
    const { code, notes } = await host.call(argv, created, fakeTerminal({ input }));
    expect([code, notes]).toEqual([2, expect.stringContaining(mistake)]);
    expect(host.sent("POST")).toEqual([]);
  });

  test.each([[["--node", "attic"]], [["--guest", "image:1"]]])(
    "requires both a guest and a node (%j)",
    async (given) => {
      expect((await host.call(["create", "Bot", ...given], created)).code).toBe(2);
      expect(host.seen).toEqual([]);
    },
  );
});

describe("the agent argument", () => {
  test("accepts the agent's exact name instead of its ID", async () => {
    host.agent = { ...AGENT, name: "Night shift" };
    expect((await host.call(["get", "Night shift"])).out).toMatch(/agent +Night shift \(agt_1\)/);
    const { code, notes } = await host.call(["get", "night shift"]);
    expect([code, notes]).toEqual([1, expect.stringContaining("fairlead agent list")]);
  });

  test("lists the IDs when several agents have the name, and changes none of them", async () => {
    const agents = [AGENT, { ...AGENT, id: "agt_2" }];
    const { code, notes } = await host.call(["stop", "Bot"], { "GET /v1/agents": { body: { agents } } });
    expect([code, notes]).toEqual([1, expect.stringContaining("agt_1, agt_2")]);
    expect(host.sent("POST")).toEqual([]);
  });
});

describe("agent get, list and config", () => {
  test("get shows the reason for the state, and where the agent may still be running", async () => {
    host.agent = {
      ...AGENT,
      lifecycleState: "starting",
      runtimeProvider: `node:${NODE_IDS.cellar}`,
      runtime: {
        ...AGENT.runtime,
        message: "Node Attic does not answer.",
        restartCount: 3,
        lastExit: { code: 137, reason: "out of memory", at: "2030-01-01T00:00:05Z" },
      },
    };
    const { out } = await host.call(["get", "agt_1"]);
    expect(out).toMatch(/state +starting\nreason +Node Attic does not answer\.\n/);
    expect(out).toContain(`may still run on ${NODE_IDS.attic}`);
    expect(out).toMatch(/restarts +3\nlast exit +out of memory at/);
  });

  test("list shows every agent, or how to create the first one", async () => {
    expect((await host.call(["list"])).out).toMatch(/agt_1 +Bot +running +fairlead-demo-agent/);
    const none = await host.call(["list"], { "GET /v1/agents": { body: { agents: [] } } });
    expect(none.out).toContain("fairlead agent create");
  });

  test("get and list replace control characters in names and messages", async () => {
    const evil = "\u001b[31m\u202eevil";
    host.agent = { ...AGENT, name: evil, runtime: { ...AGENT.runtime, message: evil } };
    const { out } = await host.call(["get", "agt_1"]);
    const shown = out + (await host.call(["list"])).out;
    expect(shown).toContain("\ufffd[31m\ufffdevil");
    for (const unseen of ["\u001b", "\u202e"]) expect(shown).not.toContain(unseen);
  });

  test("config prints what `update --config` accepts", async () => {
    const config = { env: { A: "1" }, secrets: { TOKEN: { as: "file" } } };
    const { out } = await host.call(["config", "agt_1"], { "GET /v1/agents/agt_1/config": { body: config } });
    expect(JSON.parse(out)).toEqual(config);
  });
});

describe("agent update", () => {
  const config = { "GET /v1/agents/agt_1/config": { body: { port: 9000, env: { A: "1", B: "2" } } } };
  const answers = { ...config, "PATCH /v1/agents/agt_1": { body: AGENT } };

  test.each([
    [["--name", "Robot"], { name: "Robot" }],
    [["--guest", "image:2"], { guest: "image:2" }],
    [["--connector", "slack"], { connectorSlugs: ["slack"] }],
    [["--no-connector"], { connectorSlugs: [] }],
    [["--env", "C=3", "--unset-env", "B"], { config: { port: 9000, env: { A: "1", C: "3" } } }],
  ])("%j changes nothing else", async (argv, body) => {
    expect((await host.call(["update", "agt_1", ...argv], answers)).code).toBe(0);
    expect(host.sent("PATCH")).toEqual([body]);
  });

  test("without a change says what can be changed, and sends nothing", async () => {
    expect((await host.call(["update", "agt_1"], answers)).code).toBe(2);
    expect(host.sent("PATCH")).toEqual([]);
  });
});

describe("agent delete", () => {
  const answers = { "DELETE /v1/agents/agt_1": { body: {} } };

  test("asks for the agent's name, and deletes the agent once it is typed", async () => {
    const { code, out, notes } = await host.call(["delete", "agt_1"], answers, fakeTerminal({ typed: "Bot" }));
    expect([code, out]).toEqual([0, "deleting agt_1 Bot\n"]);
    expect(notes).toContain("secrets, limits and events");
    expect(host.seen.at(-1)?.url).toBe("/v1/agents/agt_1");
  });

  test.each([
    { where: "another name is typed", argv: [], terminal: fakeTerminal({ typed: "bot" }), ends: 1 },
    {
      where: "--confirm has another name",
      argv: ["--confirm", "agt_1"],
      terminal: fakeTerminal({ input: "" }),
      ends: 1,
    },
    { where: "there is no terminal to confirm on", argv: [], terminal: fakeTerminal({ input: "" }), ends: 2 },
  ])("deletes nothing when $where", async ({ argv, terminal, ends }) => {
    expect((await host.call(["delete", "agt_1", ...argv], answers, terminal)).code).toBe(ends);
    expect(host.sent("DELETE")).toEqual([]);
  });

  test("--force asks not to wait for an unreachable node", async () => {
    const argv = ["delete", "Bot", "--confirm", "Bot", "--force", "--json"];
    const { code, out } = await host.call(argv, answers, fakeTerminal({ input: "" }));
    expect([code, JSON.parse(out)]).toEqual([0, {}]);
    expect(host.seen.at(-1)?.url).toBe("/v1/agents/agt_1?force=true");
  });
});
