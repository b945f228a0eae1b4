import { connectorSchema } from "@fairlead/protocol/agents";
import { describe, expect, test } from "vitest";
import { ConfigError, loadConfig } from "../../../installation/config/config.ts";
import { BUILT_IN_CONNECTORS, ConnectorCatalogue } from "./connectors.ts";

const OWN = { slug: "github", description: "Issues.", secrets: [{ name: "GITHUB_TOKEN", as: "file" }] } as const;

describe("the connector catalog", () => {
  test("has slack and http, each with the secret names that programs expect", () => {
    const names = Object.fromEntries(
      new ConnectorCatalogue([]).list().map(({ slug, secrets }) => [slug, secrets.map(({ name }) => name)]),
    );
    expect(names).toEqual({
      http: ["HTTP_CONNECTOR_URL", "HTTP_CONNECTOR_TOKEN"],
      slack: ["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"],
    });
  });

  test("is sorted by slug, finds each connector, and skips those that no longer exist", () => {
    const catalogue = new ConnectorCatalogue([{ ...OWN, secrets: [...OWN.secrets] }]);
    expect(catalogue.list().map(({ slug }) => slug)).toEqual(["github", "http", "slack"]);
    expect(catalogue.find("github")).toEqual(OWN);
    expect(catalogue.find("constructor")).toBeNull();
    expect(catalogue.known(["gone", "github", "gone"])).toEqual([OWN]);
  });

  test("contains only connectors that would be valid in the config under another slug", () => {
    for (const connector of BUILT_IN_CONNECTORS) {
      expect(connectorSchema.parse(connector)).toEqual(connector);
      expect(configured([{ ...connector, slug: "other" }])).toHaveLength(1);
    }
  });
});

function configured(connectors: unknown) {
  return loadConfig({ env: { FAIRLEAD_CONNECTORS: JSON.stringify(connectors) } }).connectors;
}

function mistakes(connectors: unknown): string {
  try {
    configured(connectors);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return "";
}

describe("connectors of the config", () => {
  test("are empty by default, and are read as JSON from the environment", () => {
    expect(loadConfig({ env: {} }).connectors).toEqual([]);
    const path = { name: "github.pem", as: "file", variable: "GITHUB_KEY_PATH" };
    const renamed = { name: "github.token", as: "env", variable: "GITHUB_TOKEN" };
    const connector = { ...OWN, secrets: [path, renamed] };
    expect(configured([connector])).toEqual([connector]);
    expect(configured([{ ...OWN, secrets: [] }])).toHaveLength(1);
  });

  test.each([
    ["invalid JSON", "[", "expected array"],
    ["the slug of a built-in connector", [{ ...OWN, slug: "slack" }], "connectors[0].slug"],
    ["the same slug twice", [OWN, OWN], "the same slug twice"],
    ["a slug with invalid characters", [{ ...OWN, slug: "Git Hub" }], "connectors[0].slug"],
    ["no description", [{ slug: "x", secrets: [] }], "connectors[0].description"],
    ["an unknown field", [{ ...OWN, url: "x" }], "url"],
    ["a path as a name", [secrets({ name: "../x", as: "file" })], "connectors[0].secrets[0].name"],
    ["the file of the agent's own token", [secrets({ name: "fairlead-token", as: "file" })], "own token"],
    ["an unsupported use", [secrets({ name: "X", as: "registry" })], "connectors[0].secrets[0].as"],
    ["a name that is not a valid variable", [secrets({ name: "x.y", as: "env" })], "secrets[0].variable"],
    ["an invalid variable", [secrets({ name: "x", as: "file", variable: "1-X" })], "secrets[0].variable"],
    ["a variable that the platform sets", [secrets({ name: "FAIRLEAD_AGENT_ID", as: "env" })], "set by the platform"],
    ["the port variable", [secrets({ name: "x", as: "file", variable: "PORT" })], "set by the platform"],
    [
      "the same name twice in a connector",
      [secrets({ name: "X", as: "env" }, { name: "X", as: "file" })],
      "the same name twice",
    ],
    [
      "the same variable twice",
      [secrets({ name: "X", as: "env" }, { name: "y", as: "file", variable: "X" })],
      "the same variable twice",
    ],
  ])("are rejected with %s, naming the field", (_what, connectors, told) => {
    expect(mistakes(connectors)).toContain(told);
  });
});

function secrets(...list: readonly Record<string, string>[]) {
  return { ...OWN, secrets: list };
}
