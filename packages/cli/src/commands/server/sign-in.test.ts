import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@fairlead/protocol/values/clock";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { fakeTerminal } from "../../testing/fake-terminal.ts";
import { type RunOptions, run } from "../../testing/run.ts";
import { type StubOAuth, startStubOAuth } from "../../testing/stub-oauth.ts";

let configDir: string;
let server: StubOAuth;
beforeEach(async () => {
  configDir = join(mkdtempSync(join(tmpdir(), "fairlead-login-")), "fairlead");
  server = await startStubOAuth();
});
afterEach(() => {
  vi.useRealTimers();
  server.close();
  rmSync(join(configDir, ".."), { recursive: true });
});

const file = (): string => join(configDir, "credentials.json");
const stored = (): { platforms: Record<string, { login: object | null }> } => JSON.parse(readFileSync(file(), "utf8"));

function fairlead(line: string, options: RunOptions = {}): ReturnType<typeof run> {
  return run(line.split(" "), { configDir, ...options });
}
const login = (options?: RunOptions): ReturnType<typeof run> => fairlead(`login --base-url ${server.url}`, options);

/** Fast-forwards waits. @returns the number of seconds waited. */
async function played<T>(work: Promise<T>): Promise<{ result: T; seconds: number }> {
  let seconds = 0;
  let result: { readonly of: T } | null = null;
  void work.then((of) => (result = { of }));
  while (result === null) {
    // Real I/O continues between the ticks.
    await new Promise<void>((resolve) => void setImmediate(resolve));
    if (vi.getTimerCount() === 0) continue;
    await vi.advanceTimersByTimeAsync(1000);
    seconds += 1;
  }
  return { result: (result as { of: T }).of, seconds };
}

describe("fairlead login by device code", () => {
  test("shows the page and the code, waits, and stores the login so that only its owner can read it", async () => {
    server.decisions.unshift("authorization_pending", "authorization_pending");
    const result = await login();
    expect(result).toMatchObject({ code: 0, out: `signed in to ${server.url} as ann@example.org\n` });
    expect(result.notes).toContain(`${server.url}/device\n`);
    expect(result.notes).toContain("WDJB-MJHT");
    expect(result.notes).toContain("10 min");
    expect([statSync(file()).mode & 0o777, statSync(configDir).mode & 0o777]).toEqual([0o600, 0o700]);
    expect(readdirSync(configDir)).toEqual(["credentials.json"]);
    expect(result.out + result.notes).not.toMatch(/access-1|refresh-1|the-device-code/);
  });

  test("opens the page with the code filled in, unless --no-browser is set", async () => {
    const opened: string[] = [];
    const openBrowser = (url: string): boolean => opened.push(url) > 0;
    expect((await login({ openBrowser })).notes).toContain("Opening your browser");
    await fairlead(`login --no-browser --base-url ${server.url}`, { openBrowser });
    expect(opened).toEqual([`${server.url}/device?user_code=WDJB-MJHT`]);
  });

  test("prints the user and the platform with --json, and nothing secret", async () => {
    const result = await fairlead(`login --json --base-url ${server.url}`);
    expect(JSON.parse(result.out)).toMatchObject({ baseUrl: server.url, user: { email: "ann@example.org" } });
    expect(result.out).not.toMatch(/access-|refresh-/);
  });

  test("revokes the login that it replaces, so that no unused session is left", async () => {
    await login();
    expect((await login()).code).toBe(0);
    expect(server.revoked).toEqual(["refresh-1"]);
    expect((await fairlead("whoami")).code).toBe(0);
  });

  test("says that FAIRLEAD_TOKEN takes precedence over the login", async () => {
    const result = await login({ env: { FAIRLEAD_TOKEN: "tok" } });
    expect(result).toMatchObject({ code: 0, notes: expect.stringContaining("`unset FAIRLEAD_TOKEN`") });
  });

  test.each([
    ["access_denied", "denied in the browser"],
    ["expired_token", "expired before it was approved"],
  ] as const)("fails with the reason and stores nothing when the code ends as %s", async (decision, message) => {
    server.decisions.splice(0, 1, decision);
    expect(await login()).toMatchObject({ code: 1, notes: expect.stringContaining(message) });
    expect(existsSync(file())).toBe(false);
  });

  test("fails when the code expires, even if the server still reports it as pending", async () => {
    server.timing.expiresIn = 0.05;
    server.decisions.splice(0, 1, "authorization_pending");
    expect(await login()).toMatchObject({ code: 1, notes: expect.stringContaining("expired") });
  });

  test("adds five seconds to every later wait after slow_down (RFC 8628 §3.5)", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    server.timing.interval = 1;
    server.decisions.unshift("slow_down", "authorization_pending");
    const { result, seconds } = await played(login());
    expect(result.code).toBe(0);
    expect(seconds).toBeGreaterThanOrEqual(1 + 6 + 6);
  });

  test("retries when the server is briefly unavailable", async () => {
    server.decisions.splice(0, 1, "authorization_pending");
    const work = login();
    await vi.waitUntil(() => server.paths.filter((path) => path === "/oauth/token").length > 0);
    server.failWith = 503;
    const asked = server.paths.length;
    await vi.waitUntil(() => server.paths.length > asked + 1);
    server.decisions.splice(0, 1, "approve");
    server.failWith = null;
    expect(await work).toMatchObject({ code: 0 });
  });

  test("exits with 130 immediately on Ctrl-C, however long the polling interval", async () => {
    server.timing.interval = 30;
    const terminal = fakeTerminal();
    const work = login({ terminal });
    await vi.waitUntil(() => terminal.printed.notes.includes("Waiting for the browser"));
    terminal.interrupt();
    expect((await work).code).toBe(130);
    expect(terminal.exits).toEqual([130]);
    expect(existsSync(file())).toBe(false);
  });
});

describe("fairlead login --with-token", () => {
  const claims = { sub: "usr_1", sid: "sis_1", exp: Math.floor(Date.now() / 1000) + 600 };
  const token = `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.c2ln`;
  const withToken = (input: string): ReturnType<typeof run> =>
    fairlead(`login --with-token --base-url ${server.url}`, { terminal: fakeTerminal({ input }) });

  test("signs in without a browser, until the token expires", async () => {
    server.accept(token);
    const result = await withToken(`${token}\n`);
    expect(result).toMatchObject({ code: 0, out: `signed in to ${server.url} as ann@example.org\n` });
    expect((await fairlead("whoami")).code).toBe(0);
    const later = { now: () => claims.exp * 1000 };
    const expired = await fairlead("whoami", { clock: { ...systemClock, ...later } });
    expect(expired).toMatchObject({ code: 1, notes: expect.stringContaining("Run `fairlead login --base-url") });
  });

  test("stores nothing when the token is malformed or rejected, and does not print it", async () => {
    expect(await withToken(token)).toMatchObject({ code: 1 });
    const wrong = await withToken("flk_a-key-of-another-kind");
    expect(wrong).toMatchObject({ code: 2, notes: expect.stringContaining("This is not a session token") });
    expect(wrong.notes).not.toContain("flk_");
    expect(existsSync(file())).toBe(false);
  });

  test("creates a login that `fairlead logout` ends on the platform", async () => {
    server.accept(token);
    await withToken(token);
    expect(await fairlead("logout")).toMatchObject({ code: 0 });
    expect(server.paths).toContain("/v1/me/sessions/sis_1");
  });
});

describe("fairlead token", () => {
  test("prints a token that is valid for at least a minute, renewed if necessary", async () => {
    await login();
    expect(await fairlead("token")).toMatchObject({ code: 0, out: "access-1\n" });
    const later = { ...systemClock, now: () => systemClock.now() + 590_000 };
    expect(await fairlead("token", { clock: later })).toMatchObject({ code: 0, out: "access-2\n" });
  });

  test("prints FAIRLEAD_TOKEN if it is set; with neither that nor a login, says how to sign in", async () => {
    expect((await fairlead("token", { env: { FAIRLEAD_TOKEN: "tok" } })).out).toBe("tok\n");
    expect(await fairlead("token")).toMatchObject({
      code: 1,
      out: "",
      notes: expect.stringContaining("fairlead login"),
    });
  });
});

describe("fairlead login --web", () => {
  const browser = (after: (answer: Response) => void = () => {}) => {
    return (url: string): boolean => {
      void fetch(url).then(after);
      return true;
    };
  };
  const web = (options?: RunOptions): ReturnType<typeof run> =>
    fairlead(`login --web --base-url ${server.url}`, options);

  test("signs in with PKCE and a redirect to a local port", async () => {
    const answers: Response[] = [];
    const result = await web({ openBrowser: browser((answer) => answers.push(answer)) });
    expect(result).toMatchObject({ code: 0, out: expect.stringContaining("ann@example.org") });
    await vi.waitUntil(() => answers.length > 0);
    expect(await answers[0]?.text()).toContain("You are signed in");
    expect(answers[0]?.headers.get("referrer-policy")).toBe("no-referrer");
  });

  test("reports a denial in the browser, in the terminal and on the page", async () => {
    server.decisions.splice(0, 1, "access_denied");
    const pages: Response[] = [];
    const result = await web({ openBrowser: browser((page) => pages.push(page)) });
    expect(result).toMatchObject({ code: 1, notes: expect.stringContaining("denied in the browser") });
    await vi.waitUntil(() => pages.length > 0);
    expect(await pages[0]?.text()).toContain("Sign-in failed");
  });

  test("ignores a redirect with another state", async () => {
    const statuses: number[] = [];
    const openBrowser = (page: string): boolean => {
      const redirectUri = new URL(page).searchParams.get("redirect_uri") ?? "";
      void fetch(`${redirectUri}?code=stolen&state=guessed`).then(async (answer) => {
        statuses.push(answer.status);
        await fetch(page);
      });
      return true;
    };
    expect(await web({ openBrowser })).toMatchObject({ code: 0 });
    expect(statuses).toEqual([404]);
  });

  test("exits with 130 and closes the port on Ctrl-C", async () => {
    const terminal = fakeTerminal();
    const work = web({ terminal });
    await vi.waitUntil(() => terminal.printed.notes.includes("Waiting for the browser"));
    terminal.interrupt();
    expect((await work).code).toBe(130);
    const [, redirectUri = ""] = /redirect_uri=([^&\s]+)/.exec(terminal.printed.notes) ?? [];
    await expect(fetch(decodeURIComponent(redirectUri))).rejects.toThrow("fetch failed");
  });
});

describe("the sign-in address", () => {
  test("is rejected before anything is sent if it is plain HTTP to another machine, unless --insecure", async () => {
    const refused = await fairlead("login --base-url http://ai.example.org");
    expect(refused).toMatchObject({ code: 2, notes: expect.stringMatching(/plain HTTP.*--insecure/) });
  });

  test("is rejected if the platform has another one, which the message names", async () => {
    server.metadata["issuer"] = "https://ai.example.org";
    const result = await login();
    expect(result).toMatchObject({ code: 1, notes: expect.stringContaining("--base-url https://ai.example.org") });
  });

  test("is reported differently when the server is not Fairlead and when there is no server", async () => {
    server.failWith = 404;
    expect((await login()).notes).toContain("Is it Fairlead?");
    server.close();
    expect((await login()).notes).toContain("Cannot reach the platform host");
  });

  test("is rejected if the server names a page that is not a web address", async () => {
    server.metadata["device_authorization_endpoint"] = `${server.url}/v1/me`;
    expect((await login()).code).toBe(1);
  });

  test("is used by later commands; --base-url and FAIRLEAD_BASE_URL take precedence", async () => {
    await login();
    expect((await fairlead("whoami")).out).toContain("ann@example.org");
    const elsewhere = await fairlead("whoami", { env: { FAIRLEAD_BASE_URL: "https://other.example.org" } });
    expect(elsewhere.notes).toContain("not signed in to https://other.example.org");
    expect((await fairlead("whoami --base-url https://third.example.org")).notes).toContain(
      "https://third.example.org",
    );
  });
});

describe("the stored login", () => {
  const LATER = 1_000_000;
  const later = { now: () => Date.now() + LATER, monotonic: () => performance.now() };

  test("is used by whoami without a token in the environment", async () => {
    await login();
    const result = await fairlead("whoami");
    expect(result).toMatchObject({
      code: 0,
      out: expect.stringContaining(`ann@example.org (Ann, usr_1) at ${server.url}\n`),
    });
    expect(result.out).toMatch(/prj_1 +Research +owner/);
  });

  test("is renewed when its access token is about to expire, and the new tokens are stored", async () => {
    await login();
    expect(await fairlead("whoami", { clock: later })).toMatchObject({ code: 0 });
    expect(JSON.stringify(stored())).toMatch(/access-2.*refresh-2/);
  });

  test("is renewed once by commands that run at the same time: no refresh token is sent twice", async () => {
    await login();
    let refreshes = 0;
    server.beforeRefresh = async () => {
      refreshes += 1;
      // Long enough for all others to wait for the lock.
      await new Promise<void>((resolve) => void setTimeout(resolve, 150));
    };
    const results = await Promise.all(Array.from({ length: 5 }, () => fairlead("whoami", { clock: later })));
    expect(results.map(({ notes }) => notes)).toEqual(["", "", "", "", ""]);
    expect([refreshes, server.replays]).toEqual([1, 0]);
  });

  test("is renewed, and the call repeated once, when the host rejects an unexpired access token", async () => {
    await login();
    server.forgetAccess();
    expect(await fairlead("whoami")).toMatchObject({ code: 0 });
    expect(JSON.stringify(stored())).toContain("access-2");
  });

  test("is deleted when it was revoked elsewhere, and the command says to sign in", async () => {
    await login();
    server.endLogin();
    const result = await fairlead("whoami");
    expect(result).toMatchObject({ code: 1, notes: expect.stringContaining("Run `fairlead login`") });
    expect(stored().platforms[server.url]?.login).toBeNull();
    expect((await fairlead("whoami")).notes).toContain("not signed in");
    expect(server.replays).toBe(1);
  });

  test("is kept when the server is unavailable during a renewal", async () => {
    await login();
    server.failWith = 503;
    expect(await fairlead("whoami", { clock: later })).toMatchObject({
      code: 1,
      notes: expect.stringContaining("503"),
    });
    server.failWith = null;
    expect(await fairlead("whoami", { clock: later })).toMatchObject({ code: 0 });
  });

  test("is renewed and stored before the command exits on Ctrl-C", async () => {
    await login();
    const terminal = fakeTerminal();
    server.beforeRefresh = async () => terminal.interrupt();
    expect((await fairlead("whoami", { clock: later, terminal })).code).toBe(130);
    server.beforeRefresh = async () => {};
    expect((await fairlead("whoami")).code).toBe(0);
    expect(server.replays).toBe(0);
  });

  test("is rejected, with advice, when other users can read its file", async () => {
    await login();
    chmodSync(file(), 0o640);
    const result = await fairlead("whoami");
    expect(result).toMatchObject({ code: 1, notes: expect.stringContaining(`chmod 600 '${file()}'`) });
    expect(result.notes).toContain("mode 0640");
    const byToken = { FAIRLEAD_TOKEN: "access-1", FAIRLEAD_BASE_URL: server.url };
    expect((await fairlead("whoami", { env: byToken })).code).toBe(0);
  });
});

describe("fairlead logout", () => {
  test("switches later commands to another platform that has a login", async () => {
    const other = await startStubOAuth();
    await fairlead(`login --base-url ${other.url}`);
    await login();
    await fairlead("logout");
    expect((await fairlead("whoami")).out).toContain(`at ${other.url}`);
    other.close();
  });

  test("revokes the login on the platform and deletes it", async () => {
    await login();
    expect(await fairlead("logout")).toMatchObject({ code: 0, out: `signed out of ${server.url}\n` });
    expect(server.revoked).toEqual(["refresh-1"]);
    expect(stored().platforms).toEqual({});
    expect((await fairlead("whoami")).notes).toContain(`not signed in to ${server.url}`);
  });

  test("deletes the login even if the platform is unreachable, and says that the session still exists", async () => {
    await login();
    server.close();
    const result = await fairlead("logout");
    expect(result).toMatchObject({
      code: 1,
      notes: expect.stringMatching(/signed out on this machine.*\n.*session revoke/),
    });
    expect(stored().platforms).toEqual({});
  });

  test("succeeds without a login, and says so", async () => {
    expect(await fairlead(`logout --base-url ${server.url}`)).toMatchObject({
      code: 0,
      out: `not signed in to ${server.url}\n`,
    });
  });
});
