import type { Connector } from "@fairlead/protocol/agents";
import { workloadSpecSchema } from "@fairlead/protocol/workload";
import { describe, expect, test } from "vitest";
import { placedAgent } from "../life/placed-agent.fixture.ts";
import { agentSpec, type SpecFacts } from "./agent-spec.ts";

const ID = "agt_01kc3b6q2v8r5x0m7n4t9w1yzj";
const agent = placedAgent({ id: ID, projectId: "prj_1", nodeId: "nod_1", guest: "fairlead-demo-agent" });
const slack: Connector = {
  slug: "slack",
  description: "",
  secrets: [
    { name: "SLACK_BOT_TOKEN", as: "env" },
    { name: "slack.pem", as: "file", variable: "SLACK_KEY_PATH" },
    { name: "SLACK_APP_TOKEN", as: "env", variable: "APP_TOKEN" },
  ],
};
const facts = (more: Partial<SpecFacts> = {}): SpecFacts => ({
  connectors: [],
  held: new Map(),
  modelsUrl: "https://models.example.org",
  ...more,
});

describe("the workload of an agent", () => {
  test("is a valid spec, named after the agent, with a token and the environment that every agent gets", () => {
    const spec = workloadSpecSchema.parse(agentSpec(agent, facts()));
    expect(spec).toMatchObject({
      workloadId: ID,
      workloadType: "WORKLOAD_TYPE_AGENT",
      name: "agent-01kc3b6q2v8r5x0m7n4t9w1yzj",
      image: "fairlead/demo-agent:1",
      workerToken: true,
      models: [],
      versionPath: null,
      update: "stop-first",
    });
    expect(spec.env).toEqual({
      FAIRLEAD_AGENT_ID: ID,
      FAIRLEAD_MODELS_URL: "https://models.example.org",
      FAIRLEAD_PROJECT_ID: "prj_1",
      FAIRLEAD_TOKEN_FILE: "/run/secrets/fairlead-token",
      OPENAI_BASE_URL: "https://models.example.org/v1",
      PORT: "8080",
    });
    const platform = { name: "models.example.org", host: "models.example.org", port: 443, forwarded: false };
    expect(spec.network).toEqual({ internet: true, platform });
    expect(spec).not.toHaveProperty("secrets");
  });

  test("follows the agent's config, which overrides the preset of its guest", () => {
    const config = { port: 9000, env: { PORT: "1", MORE: "2" }, args: ["run"], update: "start-first" } as const;
    const spec = agentSpec({ ...agent, config: { ...config, args: ["run"], health: { path: "/up" } } }, facts());
    expect(spec).toMatchObject({ port: 9000, args: ["run"], update: "start-first", health: { path: "/up" } });
    expect(spec.env).toMatchObject({ PORT: "1", MORE: "2", FAIRLEAD_AGENT_ID: ID });
  });

  const LOCAL = "host.docker.internal";
  test.each([
    ["http://127.0.0.1:8081", true, ["http://host.docker.internal:8081", LOCAL, "127.0.0.1", 8081, true]],
    ["http://localhost:8081/", true, ["http://host.docker.internal:8081", LOCAL, "127.0.0.1", 8081, true]],
    ["http://[::1]", true, ["http://host.docker.internal", LOCAL, "127.0.0.1", 80, true]],
    ["https://localhost", true, ["https://host.docker.internal", LOCAL, "127.0.0.1", 443, true]],
    ["http://10.0.0.1:8081", true, ["http://10.0.0.1:8081", "10.0.0.1", "10.0.0.1", 8081, false]],
    ["http://localhost.a.org", true, ["http://localhost.a.org", "localhost.a.org", "localhost.a.org", 80, false]],
    ["http://127.0.0.1:8081", false, ["http://host.docker.internal:8081", LOCAL, "127.0.0.1", 8081, true]],
    ["http://10.0.0.1:8081", false, ["http://host.docker.internal:8081", LOCAL, "10.0.0.1", 8081, true]],
    ["http://[2001:db8::1]", false, ["http://host.docker.internal", LOCAL, "2001:db8::1", 80, true]],
    ["https://m.example.org", false, ["https://m.example.org", "m.example.org", "m.example.org", 443, true]],
  ] as const)("reaches the inference host at %s, internet %s, as %j", (modelsUrl, internet, expected) => {
    const spec = agentSpec({ ...agent, config: { network: { internet } } }, facts({ modelsUrl }));
    const [url, name, host, port, forwarded] = expected;
    expect(spec.env["FAIRLEAD_MODELS_URL"]).toBe(url);
    expect(spec.network).toEqual({ internet, platform: { name, host, port, forwarded } });
  });

  test.each([
    [{}, "running"],
    [{ port: 9000 }, "http"],
    [{ health: { path: "/up" } }, "http"],
    [{ health: { probe: "running" } }, "running"],
  ] as const)("of an image with the config %o uses the health probe %s", (config, probe) => {
    expect(agentSpec({ ...agent, guest: "example/guest:1", config }, facts()).health.probe).toBe(probe);
  });

  test("requests secrets under the agent's own keys, each used as its connector or its config says", () => {
    const held = new Map([["SLACK_BOT_TOKEN", { version: "v1" }]]);
    const config = { secrets: { EXTRA: { as: "file" } }, registryAuthSecret: "REGISTRY" } as const;
    const spec = agentSpec({ ...agent, connectorSlugs: ["slack"], config }, facts({ connectors: [slack], held }));
    expect(spec.secrets).toEqual([
      { name: "EXTRA", key: `${ID}.EXTRA`, as: "file", version: null },
      { name: "APP_TOKEN", key: `${ID}.SLACK_APP_TOKEN`, as: "env", version: null },
      { name: "SLACK_BOT_TOKEN", key: `${ID}.SLACK_BOT_TOKEN`, as: "env", version: "v1" },
      { name: "slack.pem", key: `${ID}.slack.pem`, as: "file", version: null },
      { name: "REGISTRY", key: `${ID}.REGISTRY`, as: "registry", version: null },
    ]);
    expect(spec.env["SLACK_KEY_PATH"]).toBe("/run/secrets/slack.pem");
  });

  test("uses a connector's secret as the config says if the config names it", () => {
    const config = { secrets: { SLACK_BOT_TOKEN: { as: "file" } } } as const;
    const spec = agentSpec({ ...agent, config }, facts({ connectors: [slack] }));
    const uses = spec.secrets?.filter(({ name }) => name === "SLACK_BOT_TOKEN").map(({ as }) => as);
    expect(uses).toEqual(["file"]);
  });

  test("has a new hash for each run, and the same hash for the same run", () => {
    const hash = (run: number): string => agentSpec({ ...agent, run }, facts()).specHash;
    expect(hash(2)).toBe(hash(2));
    expect(new Set([hash(1), hash(2), hash(3)]).size).toBe(3);
  });
});
