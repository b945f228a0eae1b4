import { readFileSync } from "node:fs";
import { PROVIDER_PRESET_NAMES, providerSchema } from "@fairlead/protocol/providers";
import { describe, expect, test } from "vitest";
import { readModelList } from "../names/model-list.ts";
import { providerNameSchema, splitModelName } from "../names/model-name.ts";
import { targetsSchema } from "./aliases/alias.ts";
import { parseBaseUrl } from "./base-url-form.ts";
import { credentialSchema, factsOf, providerSettingsSchema, toProvider } from "./provider.ts";
import { PROVIDER_PRESETS } from "./provider-presets.ts";
import { providerReference } from "./provider-reference.ts";

const settings = (fields: object = {}): ReturnType<typeof providerSettingsSchema.parse> =>
  providerSettingsSchema.parse({ preset: null, ...fields });
const told = (fields: object) =>
  toProvider({
    projectId: "prj_1",
    name: "acme",
    scope: "project",
    baseUrl: "https://api.example.com/v1",
    settings: settings(fields),
    hasCredential: true,
    createdAt: 0,
    updatedAt: 0,
  });

describe("model names", () => {
  test("are split at the first slash, and the rest may contain more", () => {
    expect(splitModelName("a/b/c//d")).toEqual({ provider: "a", model: "b/c//d" });
    for (const name of ["", "a", "/a", "a/", "/"]) expect(splitModelName(name), name).toBeNull();
  });

  test("a provider's name is a slug", () => {
    for (const name of ["a", "7", "open-ai", "x".repeat(40)])
      expect(providerNameSchema.safeParse(name).success).toBe(true);
    for (const name of ["", "-a", "a-", "A", "a_b", "a/b", "a b", "ä", "x".repeat(41), "a\n", "a:check"]) {
      expect(providerNameSchema.safeParse(name).success, JSON.stringify(name)).toBe(false);
    }
  });

  test("an alias has 1 to 16 different targets of the form <provider>/<model>", () => {
    expect(targetsSchema.safeParse(["a/b", "a/c/d"]).success).toBe(true);
    const many = Array.from({ length: 17 }, (_, at) => `a/${at}`);
    for (const targets of [[], ["a"], ["a/"], ["a/b", "a/b"], ["a/b\n"], [" a/b"], [5], many]) {
      expect(targetsSchema.safeParse(targets).success, JSON.stringify(targets)).toBe(false);
    }
  });
});

describe("a provider's settings", () => {
  test("without a preset default to chat with a bearer credential and model discovery", () => {
    expect(factsOf(settings())).toMatchObject({
      protocols: ["chat"],
      credential: { header: "authorization", scheme: "Bearer" },
      discovery: true,
      quirks: {},
      timeouts: { connectMs: 5000, firstByteMs: 120_000, idleMs: 120_000, totalMs: 1_800_000 },
    });
  });

  test("override the preset field by field", () => {
    const facts = factsOf(
      settings({
        preset: "azure-openai",
        credentialHeader: "X-Key",
        timeouts: { idleSeconds: 7 },
        quirks: { thinkingField: "reasoning" },
        models: [{ name: "m" }],
      }),
    );
    expect(facts).toMatchObject({
      protocols: ["chat", "responses"],
      credential: { header: "x-key", scheme: "" },
      discovery: false,
      timeouts: { connectMs: 5000, idleMs: 7000 },
      quirks: { outputLimit: "max_completion_tokens", developerRole: true, thinkingField: "reasoning" },
    });
    expect(factsOf(settings({ preset: "deepseek", quirks: { thinkingField: "none" } })).quirks).not.toHaveProperty(
      "thinkingField",
    );
  });

  test("are returned with every default filled in", () => {
    const provider = told({ preset: "groq", models: [{ name: "m", prices: { input: 1, output: 2 } }] });
    expect(providerSchema.strict().parse(provider)).toMatchObject({
      protocols: ["chat", "responses"],
      models: [{ name: "m", prices: { input: 1, output: 2, perRequest: 0 } }],
      discovery: false,
    });
  });

  test.each([
    ["a misspelled field", { protocol: ["chat"] }],
    ["a protocol twice", { protocols: ["chat", "chat"] }],
    ["no protocol", { protocols: [] }],
    ["a header that the server sets", { headers: { Host: "x" } }],
    ["a message-framing header", { headers: { "Transfer-Encoding": "chunked" } }],
    ["a hop-by-hop header", { headers: { connection: "close" } }],
    ["a header that says where a call came from", { headers: { "x-forwarded-for": "127.0.0.1" } }],
    ["a credential among the headers", { headers: { Authorization: "Bearer x" } }],
    ["another credential among the headers", { headers: { "x-api-key": "x" } }],
    ["a cookie among the headers", { headers: { Cookie: "a=b" } }],
    ["a header with a line break", { headers: { "x-a": "b\r\nhost: c" } }],
    ["a header name with a space", { headers: { "x a": "b" } }],
    ["a header with Unicode", { headers: { "x-a": "ü" } }],
    ["a forwarded caller credential", { forwardHeaders: ["authorization"] }],
    ["a forwarded caller cookie", { forwardHeaders: ["Cookie"] }],
    // NVIDIA-NeMo/Switchyard#410: what proxies in front of the server say of their users is theirs.
    ["a forwarded proxy assertion about its user", { forwardHeaders: ["x-goog-iap-jwt-assertion"] }],
    ["forwarded proxy claims about its user", { forwardHeaders: ["x-amzn-oidc-data"] }],
    ["a forwarded client certificate", { forwardHeaders: ["x-ssl-client-cert"] }],
    ["a forwarded header of the server's own", { forwardHeaders: ["x-fairlead-upstream"] }],
    ["a message header for the credential", { credentialHeader: "content-length" }],
    ["a negative price", { models: [{ name: "m", prices: { input: -1, output: 0 } }] }],
    ["a fractional price", { models: [{ name: "m", prices: { input: 0.5, output: 0 } }] }],
    ["a price with a misspelled part", { models: [{ name: "m", prices: { input: 1, output: 0, cached: 1 } }] }],
    ["a model twice", { models: [{ name: "m" }, { name: "m" }] }],
    ["a model with a line break", { models: [{ name: "m\n" }] }],
    ["a timeout of zero", { timeouts: { idleSeconds: 0 } }],
    ["an unknown preset", { preset: "skynet" }],
  ])("reject %s", (_what, fields) => {
    expect(providerSettingsSchema.safeParse({ preset: null, ...fields }).success).toBe(false);
  });

  test("require a credential of printable characters without spaces", () => {
    expect(credentialSchema.safeParse("sk-Proj_123+/=.~").success).toBe(true);
    for (const text of ["", "a b", "a\n", "a\r\nx: y", "ü", "\0", "x".repeat(8193)]) {
      expect(credentialSchema.safeParse(text).success, JSON.stringify(text)).toBe(false);
    }
  });
});

describe("presets", () => {
  test.each(PROVIDER_PRESET_NAMES)(
    "%s is complete, with a base URL that paths are appended to and a source",
    (name) => {
      const { baseUrl, source, protocols, credential } = PROVIDER_PRESETS[name];
      if (baseUrl !== null) expect(parseBaseUrl(baseUrl).href).toBe(baseUrl);
      expect(new URL(source).protocol).toBe("https:");
      expect(protocols.length).toBeGreaterThan(0);
      if (credential !== null) expect(credential.header).toBe(credential.header.toLowerCase());
      if (baseUrl?.startsWith("http:")) expect(credential).toBeNull();
    },
  );

  test("docs/providers.md matches the code", () => {
    const page = readFileSync(new URL("../../../../../docs/providers.md", import.meta.url), "utf8");
    expect(page).toBe(providerReference());
  });
});

describe("a provider's model list", () => {
  test("is read in all formats of providers, without duplicates and entries without a name", () => {
    const items = [
      { id: "b/c", object: "model", owned_by: "x" },
      { id: "a" },
      { id: "a" },
      { id: 5 },
      null,
      { id: "x\n" },
    ];
    expect(readModelList(JSON.stringify({ object: "list", data: items }))).toEqual(["b/c", "a"]);
    expect(readModelList(JSON.stringify(items))).toEqual(["b/c", "a"]);
    expect(readModelList('{"data":[]}')).toEqual([]);
  });

  test("is rejected in any other format", () => {
    for (const text of ["", "<html>", "null", "{}", '{"data":{}}', '{"error":{"message":"no"}}', '"x"', "[[[", "5"]) {
      expect(readModelList(text), text).toBeNull();
    }
  });

  test("is limited in length", () => {
    const data = Array.from({ length: 100_000 }, (_, at) => ({ id: `m${at}` }));
    expect(readModelList(JSON.stringify({ data }))).toHaveLength(2000);
  });
});
