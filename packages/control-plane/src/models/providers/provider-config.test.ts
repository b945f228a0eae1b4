import { rootCertificates } from "node:tls";
import { describe, expect, test } from "vitest";
import { completeProviders, type Outside, providerSettings } from "./provider-config.ts";

const FILES: Readonly<Record<string, string>> = {
  "/run/openai.key": "sk-file\n",
  "/run/empty": "\n",
  "/run/broken": "two words",
  "/run/ca.pem": `# ours\n${rootCertificates.slice(0, 2).join("\n")}\n`,
  "/run/no.pem": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
};
const outside: Outside = {
  env: { ACME_KEY: "sk-variable" },
  readFile: (path) => {
    const text = FILES[path];
    if (text === undefined) throw new Error(`there is no ${path}`);
    return text;
  },
};

const mistakesOf = (input: object): readonly string[] => {
  const parsed = providerSettings.safeParse(input);
  if (!parsed.success) return parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  return completeProviders(parsed.data, outside).mistakes.map(({ path, message }) => `${path}: ${message}`);
};

describe("the provider settings", () => {
  test("are read with everything that they refer to: credentials in files and variables, CA certificates", () => {
    const input = providerSettings.parse({
      platform: [
        { name: "openai", preset: "openai", credentialFile: "/run/openai.key" },
        { name: "acme", baseUrl: "http://10.0.0.5:8000/v1/", credentialVariable: "ACME_KEY", models: [{ name: "m" }] },
        { name: "open", baseUrl: "https://open.example.com" },
      ],
      caFile: "/run/ca.pem",
    });
    const { config } = completeProviders(input, outside);
    expect(config?.platform).toEqual([
      { name: "openai", baseUrl: "https://api.openai.com/v1", credential: "sk-file", settings: { preset: "openai" } },
      {
        name: "acme",
        baseUrl: "http://10.0.0.5:8000/v1",
        credential: "sk-variable",
        settings: { preset: null, models: [{ name: "m" }] },
      },
      { name: "open", baseUrl: "https://open.example.com", credential: null, settings: { preset: null } },
    ]);
    expect(config?.authorities).toHaveLength(2);
    expect(config?.allowPrivate).toBe(false);
  });

  test("can be given as JSON in a variable", () => {
    const text = JSON.stringify([{ name: "openai", preset: "openai" }]);
    expect(providerSettings.parse({ platform: text, allowPrivate: "true" })).toMatchObject({
      platform: [{ name: "openai" }],
      allowPrivate: true,
    });
    expect(mistakesOf({ platform: "openai" })).toHaveLength(1);
  });

  test.each([
    [{ platform: [{ name: "a" }] }, /baseUrl: is missing/],
    [{ platform: [{ name: "a", preset: "azure-openai" }] }, /baseUrl: is missing/],
    [{ platform: [{ name: "a", baseUrl: "ftp://x" }] }, /baseUrl: must be an https URL/],
    [{ platform: [{ name: "a", baseUrl: "https://x/v1/chat/completions" }] }, /must end before/],
    [{ platform: [{ name: "A", preset: "openai" }] }, /name: must be 1 to 40/],
    [{ platform: [{ name: "nodes", preset: "openai" }] }, /reserved for all nodes/],
    [{ platform: [1, 2].map(() => ({ name: "a", preset: "openai" })) }, /same name twice/],
    [{ platform: [{ name: "a", preset: "openai", credential: "sk-x" }] }, /[Uu]nrecognized/],
    [{ platform: [{ name: "a", preset: "openai", credentialFile: "a", credentialVariable: "b" }] }, /not both/],
    [
      { platform: [{ name: "a", preset: "openai", credentialFile: "/nope" }] },
      /platform\[0\].credentialFile: there is no/,
    ],
    [{ platform: [{ name: "a", preset: "openai", credentialFile: "/run/empty" }] }, /is empty/],
    [{ platform: [{ name: "a", preset: "openai", credentialFile: "/run/broken" }] }, /printable ASCII/],
    [{ platform: [{ name: "a", preset: "openai", credentialVariable: "NOPE" }] }, /NOPE is not set/],
    [{ caFile: "/nope" }, /caFile: there is no/],
    [{ caFile: "/run/empty" }, /contains no certificate/],
    [{ caFile: "/run/no.pem" }, /caFile: /],
    [{ nodeModels: [{ name: "*", price: 1 }] }, /[Uu]nrecognized/],
  ])("are rejected when they are %j", (input, message) => {
    expect(mistakesOf(input)).toEqual([expect.stringMatching(message)]);
  });

  test("never include a credential in an error", () => {
    const mistakes = mistakesOf({ platform: [{ name: "a", preset: "openai", credentialFile: "/run/broken" }] });
    expect(mistakes.join()).not.toContain("two words");
  });
});
