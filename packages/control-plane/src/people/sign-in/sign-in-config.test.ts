import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@fairlead/protocol/values/clock";
import { describe, expect, test } from "vitest";
import { ConfigError, loadConfig } from "../../installation/config/config.ts";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { OidcClient } from "./oidc/oidc-client.ts";

type Env = Record<string, string>;
const provider = { id: "acme", name: "Acme", issuer: "https://login.acme.example", clientId: "fairlead" };
const oidc = (...providers: object[]): Env => ({ FAIRLEAD_SIGN_IN_OIDC: JSON.stringify(providers) });
const clients = (...redirectUris: string[]): Env => ({
  FAIRLEAD_SIGN_IN_CLIENTS: JSON.stringify([{ id: "app", name: "App", redirectUris }]),
});

function mistakes(env: Env): readonly string[] {
  try {
    loadConfig({ env });
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes.map(({ path, message }) => `${path}: ${message}`);
    throw error;
  }
}

describe("the signIn settings", () => {
  test("default to passwords and thirty-day sessions", () => {
    const defaults = { password: true, sessionDays: 30, oidc: [], clients: [] };
    expect(loadConfig({ env: {} }).signIn).toEqual(defaults);
    const env = { FAIRLEAD_SIGN_IN_PASSWORD: "false", FAIRLEAD_SIGN_IN_SESSION_DAYS: "7", ...oidc(provider) };
    expect(loadConfig({ env }).signIn).toEqual({ ...defaults, password: false, sessionDays: 7, oidc: [provider] });
  });

  test.each([
    [{ FAIRLEAD_SIGN_IN_PASSWORD: "no" }, /^FAIRLEAD_SIGN_IN_PASSWORD: /],
    [{ FAIRLEAD_SIGN_IN_PASSWORD: "false" }, /unless an OIDC provider is configured/],
    [{ FAIRLEAD_SIGN_IN_OIDC: "[" }, /^FAIRLEAD_SIGN_IN_OIDC: /],
    [oidc(provider, provider), /contains the same id twice/],
    [oidc({ ...provider, id: "credential" }), /reserved for passwords/],
    [oidc({ ...provider, id: "a/b" }), /a-z, 0-9/],
    [oidc({ ...provider, issuer: "http://login.acme.example" }), /must be https/],
    [oidc({ ...provider, issuer: "javascript:alert(1)" }), /must be https/],
    [oidc({ ...provider, secret: "x" }), /unknown setting/],
    [oidc({ ...provider, clientSecret: "x", clientSecretFile: "y" }), /either clientSecret or clientSecretFile/],
    [clients(), /signIn\.clients\[0\]\.redirectUris/],
    [clients("http://app.example/cb"), /must be https/],
    [clients("https://app.example/cb#x"), /must be https/],
    [clients("https://user@app.example/cb"), /must be https/],
    [clients("javascript:alert(1)"), /must be https/],
    [clients("myapp:/cb"), /must be https/],
    [
      { FAIRLEAD_SIGN_IN_CLIENTS: JSON.stringify([{ id: "fairlead-cli", name: "x", redirectUris: ["https://x.y"] }]) },
      /built in/,
    ],
  ] as [Env, RegExp][])("reject %j", (env, reason) => {
    const [first, ...more] = mistakes(env);
    expect(first).toMatch(reason);
    expect(more).toEqual([]);
  });

  test.each(["https://app.example/cb", "http://localhost/cb", "http://[::1]/cb", "com.example.app:/cb"])(
    "accept %s as a program's redirect URI",
    (redirect) => expect(mistakes(clients(redirect))).toEqual([]),
  );

  test("do not reveal a secret in an error about a field beside it", () => {
    const told = mistakes(oidc({ ...provider, issuer: "ftp://x", clientSecret: "very secret" })).join();
    expect(told).not.toBe("");
    expect(told).not.toContain("very secret");
  });

  test("read a secret from its file, and prevent the start with a clear message if the file is missing", () => {
    const dir = mkdtempSync(join(tmpdir(), "fairlead-secret-"));
    const clientSecretFile = join(dir, "secret");
    const open = (): OidcClient =>
      new OidcClient(
        { ...provider, clientSecretFile },
        { publicUrl: "https://f.example", clock: systemClock, bounds: new BoundCounters() },
      );
    expect(open).toThrow(/client secret of the OIDC provider acme cannot be read: ENOENT/);
    writeFileSync(clientSecretFile, "very secret\n");
    expect(open).not.toThrow();
    rmSync(dir, { recursive: true });
  });
});
