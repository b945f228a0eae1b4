import * as oauth from "openid-client";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { STORES } from "../../../testing.fixture.ts";
import { BROWSER, cookieOf, openSignInHost, PASSWORD, type SignInHost } from "../sign-in.fixture.ts";

const OFFLINE = { scope: "offline_access" };
const REDIRECT = "http://127.0.0.1:50123/callback";
const { origin } = BROWSER;

describe.each(STORES)("the OAuth server on $name", ({ open }) => {
  let host: SignInHost;
  let client: oauth.Configuration;
  let cookies: string;

  beforeEach(async () => {
    host = await openSignInHost(open, { clients: [{ id: "editor", name: "Editor", redirectUris: [REDIRECT] }] });
    await host.addUser("ann@example.org");
    cookies = await signIn("ann@example.org");
    client = await oauth.discovery(new URL(host.url), "fairlead-cli", undefined, oauth.None(), {
      algorithm: "oauth2",
      execute: [oauth.allowInsecureRequests],
    });
  });
  afterEach(async () => {
    vi.useRealTimers();
    await host.close();
  });

  const signIn = async (email: string): Promise<string> =>
    cookieOf(await host.signIn.signInWithPassword({ email, password: PASSWORD, caller: BROWSER }));

  async function me(token: string): Promise<number> {
    return (await fetch(`${host.url}/v1/me`, { headers: { authorization: `Bearer ${token}` } })).status;
  }

  const approve = (userCode: string): Promise<void> =>
    host.oauth.decideDevice({ userCode, approve: true, cookies, origin });

  /** One poll, without the client's own waiting. */
  const poll = (code: string): Promise<oauth.TokenEndpointResponse> =>
    oauth.genericGrantRequest(client, "urn:ietf:params:oauth:grant-type:device_code", { device_code: code });

  async function logIn(): Promise<oauth.TokenEndpointResponse> {
    const device = await oauth.initiateDeviceAuthorization(client, OFFLINE);
    await approve(device.user_code);
    return poll(device.device_code);
  }

  const refused = (error: string): unknown => expect.objectContaining({ error });
  const caught = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => "it worked",
      (error: unknown) => error,
    );

  test("runs the device flow: pending, too fast, approved, token, and the code never works again", async () => {
    const device = await oauth.initiateDeviceAuthorization(client, OFFLINE);
    expect(device).toMatchObject({ verification_uri: `${host.url}/device`, expires_in: 600, interval: 5 });
    expect(device.user_code).toMatch(/^[B-Z]{4}-[B-Z]{4}$/);
    expect(device.verification_uri_complete).toBe(`${host.url}/device?user_code=${device.user_code}`);
    expect(await caught(poll(device.device_code))).toEqual(refused("authorization_pending"));
    expect(await caught(poll(device.device_code))).toEqual(refused("slow_down"));
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 5_001 });
    const typed = ` ${device.user_code.toLowerCase().replace("-", " ")}`;
    expect(await host.oauth.describeDevice(typed, cookies)).toEqual({
      client: { id: "fairlead-cli", name: "Fairlead CLI" },
      scopes: ["platform", "offline_access"],
      from: { address: "127.0.0.1", userAgent: expect.any(String), secondsAgo: expect.any(Number) },
    });
    await approve(typed);
    const tokens = await poll(device.device_code);
    expect(tokens).toMatchObject({ token_type: "bearer", expires_in: 600, scope: "platform offline_access" });
    expect(await me(tokens.access_token)).toBe(200);
    expect(await caught(poll(device.device_code))).toEqual(refused("invalid_grant"));
    await expect(host.oauth.describeDevice(typed, cookies)).rejects.toMatchObject({ code: "not_found" });
    const done = ["oauth.device_approve", "session.sign_in", "session.sign_in", "user.create"];
    expect((await host.audited()).toSorted()).toEqual(done);
  });

  test("keeps a program's session separate from the browser's, which it outlives", async () => {
    const { access_token: token, refresh_token: refreshToken = "" } = await logIn();
    const session = await host.signIn.sessionOfCookie(cookies);
    const list = await host.sessions.list(session?.userId ?? "");
    expect(list.map(({ userAgent }) => userAgent)).toEqual(["Fairlead CLI", BROWSER.userAgent]);
    await host.signIn.signOut(cookies, origin);
    expect(await me(token)).toBe(200);
    expect(await me((await oauth.refreshTokenGrant(client, refreshToken)).access_token)).toBe(200);
  });

  test("issues nothing for a code that a user rejects or that expires", async () => {
    const denied = await oauth.initiateDeviceAuthorization(client, OFFLINE);
    await host.oauth.decideDevice({ userCode: denied.user_code, approve: false, cookies, origin });
    expect(await caught(poll(denied.device_code))).toEqual(refused("access_denied"));
    const late = await oauth.initiateDeviceAuthorization(client, OFFLINE);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 601_000 });
    expect(await caught(poll(late.device_code))).toEqual(refused("expired_token"));
    await expect(approve(late.user_code)).rejects.toMatchObject({ code: "not_found" });
    await expect(approve("BCDF-GHJK")).rejects.toMatchObject({ code: "not_found" });
  });

  test("binds a code to the first user who opens it, and to nobody without a session", async () => {
    await host.addUser("bob@example.org");
    const device = await oauth.initiateDeviceAuthorization(client, OFFLINE);
    await expect(host.oauth.describeDevice(device.user_code, undefined)).rejects.toMatchObject({
      code: "invalid_credential",
    });
    await host.oauth.describeDevice(device.user_code, cookies);
    const bobs = await signIn("bob@example.org");
    await expect(host.oauth.describeDevice(device.user_code, bobs)).rejects.toMatchObject({ code: "not_found" });
    const decision = { userCode: device.user_code, approve: true, cookies: bobs, origin };
    await expect(host.oauth.decideDevice(decision)).rejects.toMatchObject({ code: "not_found" });
    await approve(device.user_code);
    expect(await me((await poll(device.device_code)).access_token)).toBe(200);
  });

  test("rotates refresh tokens, and ends the whole sign-in at the second use of one", async () => {
    const first = await logIn();
    const second = await oauth.refreshTokenGrant(client, first.refresh_token ?? "");
    expect(second.refresh_token).not.toBe(first.refresh_token);
    expect(await me(second.access_token)).toBe(200);
    const third = await oauth.refreshTokenGrant(client, second.refresh_token ?? "");
    const other = await logIn();
    expect(await caught(oauth.refreshTokenGrant(client, first.refresh_token ?? ""))).toEqual(refused("invalid_grant"));
    for (const { access_token: token, refresh_token: refreshToken = "" } of [first, second, third]) {
      expect(await me(token)).toBe(401);
      expect(await caught(oauth.refreshTokenGrant(client, refreshToken))).toEqual(refused("invalid_grant"));
    }
    expect(await me(other.access_token)).toBe(200);
    expect(await host.audited()).toContain("oauth.refresh_replayed");
  });

  test("accepts at most one of two simultaneous exchanges of one refresh token", async () => {
    const { refresh_token: token = "" } = await logIn();
    const both = await Promise.allSettled([1, 2, 3].map(() => oauth.refreshTokenGrant(client, token)));
    expect(both.filter(({ status }) => status === "fulfilled").length).toBeLessThanOrEqual(1);
    for (const outcome of both) {
      if (outcome.status === "fulfilled") expect(await me(outcome.value.access_token)).toBe(401);
    }
  });

  test("keeps a sign-in that is used, and ends one that is unused for the lifetime of a session", async () => {
    const day = 24 * 3600 * 1000;
    let { refresh_token: token = "" } = await logIn();
    for (let days = 0; days < 3; days++) {
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 29 * day });
      ({ refresh_token: token = "" } = await oauth.refreshTokenGrant(client, token));
    }
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 31 * day });
    expect(await caught(oauth.refreshTokenGrant(client, token))).toEqual(refused("invalid_grant"));
  });

  test("revokes both tokens with either, and accepts repeated and meaningless revocations", async () => {
    for (const kind of ["access_token", "refresh_token"] as const) {
      const tokens = await logIn();
      await oauth.tokenRevocation(client, tokens[kind] ?? "");
      expect(await me(tokens.access_token)).toBe(401);
      const again = oauth.refreshTokenGrant(client, tokens.refresh_token ?? "");
      expect(await caught(again)).toEqual(refused("invalid_grant"));
      await oauth.tokenRevocation(client, tokens[kind] ?? "");
    }
    await oauth.tokenRevocation(client, "nonsense '; drop table session; --");
  });

  test("does not let a program revoke tokens of others", async () => {
    const session = await host.signIn.sessionOfCookie(cookies);
    const { userId = "", id: sessionId = "" } = session ?? {};
    const browserToken = await host.tokens.issueSession({ userId, sessionId, ttlSeconds: 600 });
    await oauth.tokenRevocation(client, browserToken);
    expect(await me(browserToken)).toBe(200);
  });

  test("ends a program's tokens when its session is ended in the account", async () => {
    const tokens = await logIn();
    const headers = { authorization: `Bearer ${tokens.access_token}` };
    const listed = z
      .object({ sessions: z.array(z.object({ id: z.string(), current: z.boolean() })) })
      .parse(await (await fetch(`${host.url}/v1/me/sessions`, { headers })).json());
    const current = listed.sessions.find((session) => session.current);
    const path = `${host.url}/v1/me/sessions/${current?.id ?? ""}`;
    expect((await fetch(path, { method: "DELETE", headers })).status).toBe(200);
    expect(await me(tokens.access_token)).toBe(401);
    expect(await caught(oauth.refreshTokenGrant(client, tokens.refresh_token ?? ""))).toEqual(refused("invalid_grant"));
  });

  test("issues no refresh token without offline_access, and the session ends with its token", async () => {
    const device = await oauth.initiateDeviceAuthorization(client, {});
    await approve(device.user_code);
    const tokens = await poll(device.device_code);
    expect(tokens).toMatchObject({ scope: "platform" });
    expect(tokens.refresh_token).toBeUndefined();
    expect(await me(tokens.access_token)).toBe(200);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 661_000 });
    expect(await me(tokens.access_token)).toBe(401);
  });

  test("stores codes and tokens in a form that cannot be used", async () => {
    const device = await oauth.initiateDeviceAuthorization(client, OFFLINE);
    const { refresh_token: token = "?" } = await logIn();
    const tables = ["deviceCode", "oauthRefreshToken", "session", "verification", "audit_event"] as const;
    const rows = await Promise.all(tables.map((table) => host.store.db.selectFrom(table).selectAll().execute()));
    expect(JSON.stringify(rows)).not.toContain(device.device_code);
    expect(JSON.stringify(rows)).not.toContain(token);
  });

  describe("with an authorization code and PKCE", () => {
    const verifier = oauth.randomPKCECodeVerifier();

    async function authorizationUrl(change: Record<string, string> = {}): Promise<URL> {
      return oauth.buildAuthorizationUrl(client, {
        ...OFFLINE,
        redirect_uri: REDIRECT,
        state: "the state & <b>",
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
        ...change,
      });
    }

    async function visit(url: URL | string, cookie = cookies): Promise<URL> {
      const response = await fetch(url, { redirect: "manual", headers: { cookie } });
      expect(response.status, await response.clone().text()).toBe(302);
      return new URL(response.headers.get("location") ?? "", host.url);
    }

    const decide = async (page: URL, accept: boolean): Promise<URL> =>
      new URL(await host.oauth.decideConsent({ query: page.search.slice(1), accept, cookies, origin }));

    const exchange = (back: URL, codeVerifier = verifier): Promise<oauth.TokenEndpointResponse> =>
      oauth.authorizationCodeGrant(client, back, {
        pkceCodeVerifier: codeVerifier,
        expectedState: "the state & <b>",
      });

    test("runs from sign-in and consent to any loopback port and tokens, and the code never works again", async () => {
      const start = await authorizationUrl();
      const signInPage = await visit(start, "");
      expect(signInPage.pathname).toBe("/sign-in");
      const page = await visit(new URL(signInPage.searchParams.get("return_to") ?? "", host.url));
      expect(page.pathname).toBe("/consent");
      expect(host.oauth.describeConsent(page.search)).toEqual({
        client: { id: "fairlead-cli", name: "Fairlead CLI" },
        scopes: ["platform", "offline_access"],
        redirectHost: "127.0.0.1:50123",
      });
      const back = await decide(page, true);
      expect(back.href.startsWith(`${REDIRECT}?`)).toBe(true);
      expect(back.searchParams.get("iss")).toBe(host.url);
      const tokens = await exchange(back);
      expect(await me(tokens.access_token)).toBe(200);
      const renewed = await oauth.refreshTokenGrant(client, tokens.refresh_token ?? "");
      expect(await me(renewed.access_token)).toBe(200);
      expect(await caught(exchange(back))).toEqual(refused("invalid_grant"));
      expect(await host.audited()).toContain("oauth.authorize");
    });

    test.each([
      ["with a refresh token", OFFLINE.scope],
      ["without one", "platform"],
    ])("ends the first sign-in if a code is used a second time, %s", async (_, scope) => {
      const back = await decide(await visit(await authorizationUrl({ scope })), true);
      const tokens = await exchange(back);
      const other = await exchange(await decide(await visit(await authorizationUrl({ scope })), true));
      const live =
        tokens.refresh_token === undefined ? tokens : await oauth.refreshTokenGrant(client, tokens.refresh_token);
      expect(await me(live.access_token)).toBe(200);
      expect(await caught(exchange(back, oauth.randomPKCECodeVerifier()))).toEqual(refused("invalid_grant"));
      expect(await me(tokens.access_token)).toBe(401);
      expect(await me(live.access_token)).toBe(401);
      if (live.refresh_token !== undefined) {
        const renewal = oauth.refreshTokenGrant(client, live.refresh_token);
        expect(await caught(renewal)).toEqual(refused("invalid_grant"));
      }
      expect(await me(other.access_token)).toBe(200);
      expect(await caught(exchange(back))).toEqual(refused("invalid_grant"));
      expect((await host.audited()).filter((action) => action === "oauth.code_replayed")).toHaveLength(1);
    });

    test("leaves no tokens to either of two simultaneous redemptions of a code", async () => {
      const back = await decide(await visit(await authorizationUrl()), true);
      const outcomes = await Promise.allSettled([exchange(back), exchange(back)]);
      const [won, ...more] = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
      expect(more).toEqual([]);
      expect(await me(won?.access_token ?? "")).toBe(401);
    });

    test("requests consent each time", async () => {
      await decide(await visit(await authorizationUrl()), true);
      expect((await visit(await authorizationUrl())).pathname).toBe("/consent");
      expect((await visit(await authorizationUrl({ prompt: "none" }))).pathname).toBe("/consent");
    });

    test("redirects a user who refuses with access_denied", async () => {
      const back = await decide(await visit(await authorizationUrl()), false);
      expect(await caught(exchange(back))).toEqual(refused("access_denied"));
    });

    test("makes a code useless without the verifier of its client, and an attempt spends it", async () => {
      const back = await decide(await visit(await authorizationUrl()), true);
      expect(await caught(exchange(back, oauth.randomPKCECodeVerifier()))).toEqual(refused("invalid_grant"));
      expect(await caught(exchange(back))).toEqual(refused("invalid_grant"));
    });

    test("binds a code to the client, the redirect URI and the verifier that it was requested with", async () => {
      const redeem = async (change: Record<string, string>): Promise<unknown> => {
        const back = await decide(await visit(await authorizationUrl()), true);
        const form = {
          grant_type: "authorization_code",
          client_id: "fairlead-cli",
          code: back.searchParams.get("code") ?? "",
          redirect_uri: REDIRECT,
          code_verifier: verifier,
          ...change,
        };
        const response = await fetch(`${host.url}/v1/oauth/token`, { method: "POST", body: new URLSearchParams(form) });
        return ((await response.json()) as { error?: string }).error;
      };
      expect(await redeem({})).toBeUndefined();
      expect(await redeem({ client_id: "editor" })).toBe("invalid_grant");
      expect(await redeem({ redirect_uri: "http://127.0.0.1:50124/callback" })).toBe("invalid_grant");
      expect(await redeem({ code_verifier: "" })).toBe("invalid_request");
    });

    test("ends a code within a minute", async () => {
      const back = await decide(await visit(await authorizationUrl()), true);
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 61_000 });
      expect(await caught(exchange(back))).toEqual(refused("invalid_grant"));
    });

    test.each([
      { code_challenge: "" },
      { code_challenge_method: "plain" },
      { response_type: "token" },
      { scope: "openid" },
    ])("tells the client that %j is rejected", async (change) => {
      const back = await visit(await authorizationUrl(change));
      // Who asks for a token in the fragment is told in the fragment (OIDC Core §5).
      const answer = new URLSearchParams(back.search === "" ? back.hash.slice(1) : back.search);
      expect(answer.get("error")).toMatch(/^(invalid_request|invalid_scope|unsupported_response_type)$/);
      expect(answer.get("state")).toBe("the state & <b>");
    });

    test.each([
      ["http://127.0.0.1:50123/other"],
      ["http://evil.example/callback"],
      ["http://127.0.0.1.evil.example/callback"],
      ["http://127.0.0.1@evil.example/callback"],
      ["https://127.0.0.1/callback"],
      ["javascript:alert(1)"],
      [""],
    ])("redirects nobody to %j, which is not registered", async (redirect) => {
      for (const cookie of [cookies, ""]) {
        const url = await authorizationUrl({ redirect_uri: redirect });
        const response = await fetch(url, { redirect: "manual", headers: { cookie } });
        expect(response.status).toBe(400);
        expect(await response.json()).toMatchObject({ error: "invalid_request" });
      }
    });

    test("decides nothing for a consent request that was changed, or that has no session", async () => {
      const page = await visit(await authorizationUrl());
      const changed = new URL(page);
      changed.searchParams.set("redirect_uri", "http://127.0.0.1:6666/callback");
      await expect(decide(changed, true)).rejects.toMatchObject({ code: "not_found" });
      await expect(decide(changed, false)).rejects.toMatchObject({ code: "not_found" });
      const decision = { query: page.search.slice(1), accept: true, cookies: undefined, origin };
      await expect(host.oauth.decideConsent(decision)).rejects.toMatchObject({ code: "invalid_credential" });
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 601_000 });
      await expect(decide(page, true)).rejects.toMatchObject({ code: "not_found" });
    });
  });
});
