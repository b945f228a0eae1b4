import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { openMemoryStore } from "../../../testing.fixture.ts";
import { openSignInHost, type SignInHost } from "../sign-in.fixture.ts";
import { signInSettings } from "../sign-in-config.ts";

const DEVICE = { address: "192.0.2.7", userAgent: undefined };

const refusal = z.strictObject({ error: z.string(), error_description: z.string() });
const FORM = "application/x-www-form-urlencoded";

let host: SignInHost;
beforeAll(async () => {
  const app = {
    id: "editor",
    name: "An editor",
    redirectUris: ["com.example.editor:/back", "https://editor.example/cb"],
  };
  host = await openSignInHost(openMemoryStore, signInSettings.parse({ clients: [app] }));
});
afterAll(() => host.close());

async function post(path: string, body: string, type = FORM): Promise<{ status: number; error: string }> {
  const headers = { "content-type": type };
  const response = await fetch(`${host.url}/v1/oauth/${path}`, { method: "POST", headers, body });
  const { error } = refusal.parse(await response.json());
  expect(response.headers.get("x-request-id")).toMatch(/^req_/);
  expect(response.headers.get("cache-control")).toBe("no-store");
  return { status: response.status, error };
}

describe("errors of the OAuth endpoints have the format of RFC 6749", () => {
  const device = "grant_type=urn:ietf:params:oauth:grant-type:device_code";
  test.each([
    ["token", "", 400, "invalid_request"],
    ["token", "grant_type=password&client_id=fairlead-cli&username=a&password=b", 400, "unsupported_grant_type"],
    ["token", "grant_type=__proto__&client_id=fairlead-cli", 400, "unsupported_grant_type"],
    ["token", "grant_type=client_credentials&client_id=fairlead-cli", 400, "unsupported_grant_type"],
    ["token", "grant_type=refresh_token&client_id=fairlead-cli", 400, "invalid_request"],
    ["token", "grant_type=refresh_token&client_id=fairlead-cli&refresh_token=", 400, "invalid_request"],
    ["token", "grant_type=refresh_token&client_id=nobody&refresh_token=x", 400, "invalid_client"],
    ["token", "grant_type=refresh_token&client_id=fairlead-cli&refresh_token=x", 400, "invalid_grant"],
    ["token", "grant_type=refresh_token&grant_type=x&client_id=fairlead-cli", 400, "invalid_request"],
    ["token", `${device}&client_id=fairlead-cli&device_code='; drop table "deviceCode"; --`, 400, "invalid_grant"],
    ["token", `${device}&client_id=fairlead-cli&device_code=%00`, 400, "invalid_grant"],
    ["token", `${device}&client_id=fairlead-cli&device_code=${"x".repeat(5000)}`, 400, "invalid_request"],
    ["token", "grant_type=authorization_code&client_id=fairlead-cli&code=x&redirect_uri=x", 400, "invalid_request"],
    [
      "token",
      `grant_type=authorization_code&client_id=fairlead-cli&code=x&redirect_uri=x&code_verifier=${"v".repeat(43)}`,
      400,
      "invalid_grant",
    ],
    ["device/code", "client_id=nobody", 400, "invalid_client"],
    ["device/code", "client_id=fairlead-cli&scope=admin", 400, "invalid_scope"],
    ["revoke", "token=x&client_id=nobody", 400, "invalid_client"],
    ["revoke", "client_id=fairlead-cli", 400, "invalid_request"],
    ["token", "x".repeat(40_000), 413, "invalid_request"],
  ] as const)("POST %s with %j: %d %s", async (...[path, body, status, error]) => {
    expect(await post(path, body)).toEqual({ status, error });
  });

  test("JSON bodies are rejected", async () => {
    expect(await post("token", "{}", "application/json")).toEqual({ status: 415, error: "invalid_request" });
  });

  test("unknown paths and methods get the usual errors", async () => {
    const unknown = await fetch(`${host.url}/v1/oauth/register`, { method: "POST" });
    expect(unknown.status).toBe(404);
    expect(await unknown.json()).toMatchObject({ error: { code: "not_found" } });
    const method = await fetch(`${host.url}/v1/oauth/token`);
    expect(method.status).toBe(405);
    expect(await method.json()).toMatchObject({ error: { code: "method_not_allowed" } });
  });
});

test("only our own routes reach the sign-in library", async () => {
  for (const path of ["/api/auth/sign-up/email", "/api/auth/get-session", "/oauth2/token", "/device/code", "/jwks"]) {
    expect((await fetch(host.url + path, { method: "POST" })).status, path).toBe(404);
  }
});

test("both metadata documents name the public URL as the issuer, with the endpoints below it", async () => {
  for (const name of ["oauth-authorization-server", "openid-configuration"]) {
    const response = await fetch(`${host.url}/.well-known/${name}`);
    const metadata = z.record(z.string(), z.unknown()).parse(await response.json());
    expect(metadata).toMatchObject({ issuer: host.url, code_challenge_methods_supported: ["S256"] });
    const endpoints = Object.entries(metadata).filter(([key]) => /_(endpoint|uri)$/.test(key));
    expect(endpoints).toHaveLength(5);
    for (const [, url] of endpoints) expect(String(url).startsWith(`${host.url}/`)).toBe(true);
  }
});

test("a configured client is accepted only with its own redirect URIs", async () => {
  const ask = async (redirect: string): Promise<string> => {
    const query = new URLSearchParams({
      client_id: "editor",
      redirect_uri: redirect,
      response_type: "code",
      code_challenge: "c".repeat(43),
      code_challenge_method: "S256",
    });
    const url = `${host.url}/v1/oauth/authorize?${query.toString()}`;
    const response = await fetch(url, { redirect: "manual" });
    return response.headers.get("location")?.split("?")[0] ?? String(response.status);
  };
  expect(await ask("com.example.editor:/back")).toBe("/sign-in");
  expect(await ask("https://editor.example/cb")).toBe("/sign-in");
  for (const other of ["https://editor.example:8443/cb", "com.example.editor:/other", "http://127.0.0.1/callback"]) {
    expect(await ask(other), other).toBe("400");
  }
});

test("a client that was removed from the configuration is rejected", async () => {
  const store = await openMemoryStore();
  const shared = { ...store, close: async () => undefined };
  const before = await openSignInHost(
    async () => shared,
    signInSettings.parse({ clients: [{ id: "gone", name: "Gone", redirectUris: ["https://gone.example/cb"] }] }),
  );
  expect(await before.oauth.requestDevice({ client_id: "gone" }, DEVICE)).toMatchObject({ expires_in: 600 });
  await before.close();
  // Each of these hosts seals for itself.
  await store.db.deleteFrom("signing_key").execute();
  const after = await openSignInHost(async () => shared);
  await expect(after.oauth.requestDevice({ client_id: "gone" }, DEVICE)).rejects.toMatchObject({
    code: "invalid_client",
  });
  const rows = await store.db.selectFrom("oauthClient").select(["clientId", "disabled"]).orderBy("clientId").execute();
  expect(rows).toEqual([
    { clientId: "fairlead-cli", disabled: 0 },
    { clientId: "gone", disabled: 1 },
  ]);
  await after.close();
  await store.close();
});
