import { describe, expect, it } from "vitest";
import { readDemoAgentConfig } from "./config.ts";

const ENVIRONMENT = {
  OPENAI_BASE_URL: "http://host.docker.internal:8081/v1/",
  FAIRLEAD_TOKEN_FILE: "/run/secrets/fairlead-token",
  FAIRLEAD_AGENT_ID: "agt_1",
  PORT: "8080",
};

describe("the demo agent's config", () => {
  it("is read from what the platform gives every agent", () => {
    const config = readDemoAgentConfig({ ...ENVIRONMENT, HTTP_CONNECTOR_TOKEN: "t", HTTP_CONNECTOR_URL: "" });
    expect(config).toMatchObject({ baseUrl: "http://host.docker.internal:8081/v1", port: 8080, model: null });
    expect(config.variable("HTTP_CONNECTOR_TOKEN")).toBe("t");
    expect(config.variable("HTTP_CONNECTOR_URL")).toBeNull();
  });

  it.each(Object.keys(ENVIRONMENT))("names %s when it is missing", (name) => {
    expect(() => readDemoAgentConfig({ ...ENVIRONMENT, [name]: undefined })).toThrow(name);
  });
});
