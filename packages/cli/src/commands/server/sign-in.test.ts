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
  test("shows the page and the code, waits, and keeps the login for its owner only", async () => {
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

  test("opens the page with the code filled in, unless told not to", async () => {
    const opened: string[] = [];
    const openBrowser = (url: string): boolean => opened.push(url) > 0;
    expect((await login({ openBrowser })).notes).toContain("Opening your browser");
    await fairlead(`login --no-browser --base-url ${server.url}`, { openBrowser });
    expect(opened).toEqual([`${server.url}/device?user_code=WDJB-MJHT`]);
  });

  test("--json prints whom and where, and nothing secret", async () => {
    const result = await fairlead(`login --json --base-url ${server.url}`);
    expect(JSON.parse(result.out)).toMatchObject({ baseUrl: server.url, user: { email: "ann@example.org" } });
    expect(result.out).not.toMatch(/access-|refresh-/);
  });

  test("ends the login that it replaces, so that no session is left that nobody holds", async () => {
    await login();
    expect((await login()).code).toBe(0);
    expect(server.revoked).toEqual(["refresh-1"]);
    expect((await fairlead("whoami")).code).toBe(0);
  });

  test("says that FAIRLEAD_TOKEN goes before the login", async () => {
    const result = await login({ env: { FAIRLEAD_TOKEN: "tok" } });
    expect(result).toMatchObject({ code: 0, notes: expect.stringContaining("`unset FAIRLEAD_TOKEN`") });
  });

  test.each([
    ["access_denied", "denied in the browser"],
    ["expired_token", "expired before it was approved"],
  ] as const)("a code that ends as %s fails, says why, and keeps nothing", async (decision, message) => {
    server.decisions.splice(0, 1, decision);
    expect(await login()).toMatchObject({ code: 1, notes: expect.stringContaining(message) });
    expect(existsSync(file())).toBe(false);
  });

  test("a code that runs out by its own time fails", async () => {
    server.timing.expiresIn = 0.05;
    server.decisions.splice(0, 1, "authorization_pending");
    expect(await login()).toMatchObject({ code: 1, notes: expect.stringContaining("expired") });
  });

  test("slow_down adds five seconds to every later wait (RFC 8628 §3.5)", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    server.timing.interval = 1;
    server.decisions.unshift("slow_down", "authorization_pending");
    const { result, seconds } = await played(login());
    expect(result.code).toBe(0);
    expect(seconds).toBeGreaterThanOrEqual(1 + 6 + 6);
  });

  test("a server that is away for a moment is asked again", async () => {
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

  test("Ctrl-C leaves at once with 130, however long the wait between two polls is", async () => {
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

  test("keeps nothing where the platform refuses the token, or the text is no token, and does not repeat it", async () => {
    expect(await withToken(token)).toMatchObject({ code: 1 });
    const wrong = await withToken("flk_a-key-of-another-kind");
    expect(wrong).toMatchObject({ code: 2, notes: expect.stringContaining("This is not a session token") });
    expect(wrong.notes).not.toContain("flk_");
    expect(existsSync(file())).toBe(false);
  });

  test("is ended at the platform by a logout", async () => {
    server.accept(token);
    await withToken(token);
    expect(await fairlead("logout")).toMatchObject({ code: 0 });
    expect(server.paths).toContain("/v1/me/sessions/sis_1");
  });
});

describe("fairlead token", () => {
  test("prints a token of the login that is good for a minute, renewed where the one before is not", async () => {
    await login();
    expect(await fairlead("token")).toMatchObject({ code: 0, out: "access-1\n" });
    const later = { ...systemClock, now: () => systemClock.now() + 590_000 };
    expect(await fairlead("token", { clock: later })).toMatchObject({ code: 0, out: "access-2\n" });
  });

  test("prints FAIRLEAD_TOKEN where that is set, and says how to sign in where nothing is", async () => {
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

  test("signs in by PKCE and a redirect to a port of this machine", async () => {
    const answers: Response[] = [];
    const result = await web({ openBrowser: browser((answer) => answers.push(answer)) });
    expect(result).toMatchObject({ code: 0, out: expect.stringContaining("ann@example.org") });
    await vi.waitUntil(() => answers.length > 0);
    expect(await answers[0]?.text()).toContain("You are signed in");
    expect(answers[0]?.headers.get("referrer-policy")).toBe("no-referrer");
  });

  test("a refusal in the browser fails, in the terminal and on the page", async () => {
    server.decisions.splice(0, 1, "access_denied");
    const pages: Response[] = [];
    const result = await web({ openBrowser: browser((page) => pages.push(page)) });
    expect(result).toMatchObject({ code: 1, notes: expect.stringContaining("denied in the browser") });
    await vi.waitUntil(() => pages.length > 0);
    expect(await pages[0]?.text()).toContain("Sign-in failed");
  });

  test("a request with another state is not the answer that it waits for", async () => {
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

  test("Ctrl-C leaves with 130 and closes the port", async () => {
    const terminal = fakeTerminal();
    const work = web({ terminal });
    await vi.waitUntil(() => terminal.printed.notes.includes("Waiting for the browser"));
    terminal.interrupt();
    expect((await work).code).toBe(130);
    const [, redirectUri = ""] = /redirect_uri=([^&\s]+)/.exec(terminal.printed.notes) ?? [];
    await expect(fetch(decodeURIComponent(redirectUri))).rejects.toThrow("fetch failed");
  });
});

describe("where to sign in", () => {
  test("plain http to another machine is refused before anything is sent, unless --insecure", async () => {
    const refused = await fairlead("login --base-url http://ai.example.org");
    expect(refused).toMatchObject({ code: 2, notes: expect.stringMatching(/plain HTTP.*--insecure/) });
  });

  test("a platform with another address says which one to use", async () => {
    server.metadata["issuer"] = "https://ai.example.org";
    const result = await login();
    expect(result).toMatchObject({ code: 1, notes: expect.stringContaining("--base-url https://ai.example.org") });
  });

  test("something that is not Fairlead, and nothing at all, are told apart", async () => {
    server.failWith = 404;
    expect((await login()).notes).toContain("Is it Fairlead?");
    server.close();
    expect((await login()).notes).toContain("Cannot reach the platform host");
  });

  test("a server that names a page which is no web address is not believed", async () => {
    server.metadata["device_authorization_endpoint"] = `${server.url}/v1/me`;
    expect((await login()).code).toBe(1);
  });

  test("later commands go where the last login went; --base-url and FAIRLEAD_BASE_URL go before it", async () => {
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

  test("is renewed when its access token is about to run out, and the new tokens are kept", async () => {
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

  test("is renewed, and the call repeated once, when the host refuses an access token that should be good", async () => {
    await login();
    server.forgetAccess();
    expect(await fairlead("whoami")).toMatchObject({ code: 0 });
    expect(JSON.stringify(stored())).toContain("access-2");
  });

  test("that was ended elsewhere says to sign in, and is forgotten", async () => {
    await login();
    server.endLogin();
    const result = await fairlead("whoami");
    expect(result).toMatchObject({ code: 1, notes: expect.stringContaining("Run `fairlead login`") });
    expect(stored().platforms[server.url]?.login).toBeNull();
    expect((await fairlead("whoami")).notes).toContain("not signed in");
    expect(server.replays).toBe(1);
  });

  test("survives a server that is away while it would be renewed", async () => {
    await login();
    server.failWith = 503;
    expect(await fairlead("whoami", { clock: later })).toMatchObject({
      code: 1,
      notes: expect.stringContaining("503"),
    });
    server.failWith = null;
    expect(await fairlead("whoami", { clock: later })).toMatchObject({ code: 0 });
  });

  test("Ctrl-C while it is renewed waits until the new tokens are kept", async () => {
    await login();
    const terminal = fakeTerminal();
    server.beforeRefresh = async () => terminal.interrupt();
    expect((await fairlead("whoami", { clock: later, terminal })).code).toBe(130);
    server.beforeRefresh = async () => {};
    expect((await fairlead("whoami")).code).toBe(0);
    expect(server.replays).toBe(0);
  });

  test("is refused, with advice, when others may read its file", async () => {
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
  test("leaves the next commands to another platform that somebody is signed in to", async () => {
    const other = await startStubOAuth();
    await fairlead(`login --base-url ${other.url}`);
    await login();
    await fairlead("logout");
    expect((await fairlead("whoami")).out).toContain(`at ${other.url}`);
    other.close();
  });

  test("ends the login at the platform and forgets it", async () => {
    await login();
    expect(await fairlead("logout")).toMatchObject({ code: 0, out: `signed out of ${server.url}\n` });
    expect(server.revoked).toEqual(["refresh-1"]);
    expect(stored().platforms).toEqual({});
    expect((await fairlead("whoami")).notes).toContain(`not signed in to ${server.url}`);
  });

  test("forgets the login even when the platform is away, and says that its session lives on", async () => {
    await login();
    server.close();
    const result = await fairlead("logout");
    expect(result).toMatchObject({
      code: 1,
      notes: expect.stringMatching(/signed out on this machine.*\n.*session revoke/),
    });
    expect(stored().platforms).toEqual({});
  });

  test("without a login it says so and succeeds", async () => {
    expect(await fairlead(`logout --base-url ${server.url}`)).toMatchObject({
      code: 0,
      out: `not signed in to ${server.url}\n`,
    });
  });
});
