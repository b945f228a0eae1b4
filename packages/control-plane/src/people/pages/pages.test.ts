import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FakeBrowser, Shown } from "./testing/fake-browser.ts";
import { errorOf, PASSWORD, pathOf, type Started, start, withoutIds } from "./testing/started-pages.ts";

/** The pages as a whole, over HTTP. */

describe("the pages", () => {
  let started: Started;
  const ann = { email: "ann@example.org", name: "Ann", platformAdmin: false };

  beforeAll(async () => {
    started = await start();
    await started.admin.createUser(ann);
    await started.admin.createUser({ ...ann, email: "bob@example.org" });
    await setPassword(ann.email, PASSWORD);
  });
  afterAll(() => started.stop());

  const setPassword = async (email: string, password: string): Promise<Shown> => {
    const link = pathOf((await started.admin.resetLink({ email })).url);
    const browser = started.browser();
    await browser.open(link);
    return browser.submit(link, { email, password });
  };
  const signedIn = async (email = ann.email, password = PASSWORD): Promise<FakeBrowser> => {
    const browser = started.browser();
    await browser.open("/sign-in");
    const shown = await browser.submit("/sign-in", { email, password });
    expect(shown.title).toBe("Your account");
    return browser;
  };

  describe("have headers", () => {
    test("that allow only our own style, icon and forms, and no frames", async () => {
      for (const path of ["/sign-in", "/reset/fli_x", "/set-up/x"]) {
        const { headers } = await started.browser().open(path);
        expect(headers.get("content-security-policy")).toBe(
          "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        );
        expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
        expect(headers.get("x-content-type-options")).toBe("nosniff");
        expect(headers.get("cache-control")).toBe("no-store");
        expect(headers.get("x-frame-options")).toBe("DENY");
        expect(headers.has("strict-transport-security")).toBe(false);
      }
    });

    test("that keep the URL of a link private", async () => {
      const { url } = await started.admin.resetLink({ email: "bob@example.org" });
      const { headers } = await started.browser().open(pathOf(url));
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect((await started.browser().open("/reset/fli_x")).headers.get("referrer-policy")).toBe("no-referrer");
      expect((await started.browser().open("/sign-in")).headers.get("referrer-policy")).toBe("same-origin");
    });

    test("that the API on the same host does not have", async () => {
      const answer = await fetch(`${started.server.platformUrl}/v1/me`);
      expect(answer.headers.get("content-security-policy")).toBeNull();
      expect(answer.headers.get("set-cookie")).toBeNull();
    });

    test("that let the stylesheet be cached forever, under a name based on its content", async () => {
      const { text } = await started.browser().open("/sign-in");
      const paths = Array.from(text.matchAll(/href="(\/assets\/\w+-[0-9a-f]{12}\.\w+)"/g), ([, path]) => path);
      expect(paths).toHaveLength(2);
      for (const path of paths) {
        const answer = await fetch(started.server.platformUrl + path);
        expect(answer.status).toBe(200);
        expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      }
    });
  });

  test("rate limit an address that posts anything but our forms, before reading more of it", async () => {
    const small = await start({ FAIRLEAD_RATE_LIMITS_SIGN_INS_PER_ADDRESS: "3" });
    const post = async (body: string, type = "application/x-www-form-urlencoded"): Promise<number> => {
      const init = { method: "POST", headers: { "content-type": type }, body };
      return (await fetch(`${small.server.platformUrl}/sign-in`, init)).status;
    };
    expect(await post("[".repeat(60_000), "application/json")).toBe(415);
    expect(await post("x".repeat(100_000))).toBe(413);
    expect(await post("email=x")).toBe(403);
    expect(await post("email=x")).toBe(429);
    await small.stop();
  });

  test("send HSTS if the public URL is https, and set cookies for this host and TLS only", async () => {
    const secure = await start({ FAIRLEAD_SERVER_PUBLIC_URL: "https://fairlead.example.org" });
    const viaProxy = { headers: { "x-forwarded-for": "192.0.2.1" } };
    const answer = await fetch(`${secure.server.platformUrl}/sign-in`, viaProxy);
    expect(answer.headers.get("strict-transport-security")).toBe("max-age=31536000");
    for (const cookie of answer.headers.getSetCookie()) {
      expect(cookie).toMatch(/^__Host-\w+=[\w-]+; Path=\/; HttpOnly; SameSite=Lax; Secure$/);
    }
    await secure.stop();
  });

  test("are not in the API document", async () => {
    const document = await (await fetch(`${started.server.platformUrl}/openapi.json`)).text();
    for (const path of [
      "/sign-in",
      "/account",
      "/device",
      "/consent",
      "/set-up",
      "/reset",
      "/invitations",
      "/assets",
    ]) {
      expect(document).not.toContain(`"${path}`);
    }
  });

  test("accept only forms, and the API on the same host accepts none", async () => {
    const post = (path: string, type: string): Promise<Response> =>
      fetch(started.server.platformUrl + path, { method: "POST", headers: { "content-type": type }, body: "{}" });
    expect((await post("/sign-in", "application/json")).status).toBe(415);
    expect((await post("/v1/projects", "application/x-www-form-urlencoded")).status).not.toBe(200);
    const browser = await signedIn();
    const cookie = Array.from(browser.cookies, ([name, value]) => `${name}=${value}`).join("; ");
    const me = await fetch(`${started.server.platformUrl}/v1/me`, { headers: { cookie } });
    expect(me.status).toBe(401);
  });

  describe("reject forms", () => {
    const credentials = { email: ann.email, password: PASSWORD };

    test("from another site, including sign-in", async () => {
      const browser = started.browser();
      await browser.open("/sign-in");
      const { hidden } = browser.form("/sign-in");
      const fields = { ...hidden, ...credentials };
      const headers = { origin: "https://evil.example", "sec-fetch-site": "cross-site" };
      expect(await browser.post("/sign-in", fields, headers)).toMatchObject({ status: 403, title: "Access denied" });
      expect((await browser.post("/sign-in", credentials)).status).toBe(403);
      expect((await started.browser().post("/sign-in", fields)).status).toBe(403);
      expect((await browser.post("/sign-in", fields)).title).toBe("Your account");
    });

    test("that were opened before a sign-in or a sign-out", async () => {
      const browser = await signedIn();
      const { hidden } = browser.form("/account/name");
      await browser.submit("/sign-out");
      const signedOut = await browser.post("/account/name", { ...hidden, name: "Eve" });
      expect(signedOut).toMatchObject({ title: "Sign in" });
      await browser.submit("/sign-in", credentials);
      const again = await browser.post("/account/name", { ...hidden, name: "Eve" });
      expect(again.status).toBe(403);
      expect((await browser.open("/account")).text).toContain("<dd>Ann</dd>");
    });

    test("with fields that none of our pages have", async () => {
      const browser = await signedIn();
      const odd = await browser.submit("/account/name", { name: "Ann", platformAdmin: "1" });
      expect(odd.status).toBe(400);
    });
  });

  describe("do not tell strangers", () => {
    test("who has an account", async () => {
      const answers = [];
      for (const email of [ann.email, "bob@example.org", "nobody@example.org", "not an address"]) {
        const browser = started.browser();
        await browser.open("/sign-in");
        const shown = await browser.submit("/sign-in", { email, password: "a wrong password" });
        expect(shown.status).toBe(422);
        answers.push(withoutIds(shown).replaceAll(email, "typed"));
      }
      expect(new Set(answers).size).toBe(1);
      expect(answers[0]).toContain("The email address or password is wrong.");
    });
  });

  describe("redirect after sign-in", () => {
    const signInFor = async (returnTo: string): Promise<Shown> => {
      const browser = started.browser();
      await browser.open(`/sign-in?${new URLSearchParams({ return_to: returnTo }).toString()}`);
      return browser.submit("/sign-in", { email: ann.email, password: PASSWORD });
    };

    test("to where the user wanted to go", async () => {
      expect(await signInFor("/device?user_code=ABCD-EFGH")).toMatchObject({ path: "/device?user_code=ABCD-EFGH" });
    });

    test("to nowhere else", async () => {
      for (const text of ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"]) {
        const shown = await signInFor(text);
        expect(shown.path).toBe("/account");
        expect(shown.text).not.toContain("evil");
      }
    });

    test("to a program through a page, since browsers apply the form policy to redirects", async () => {
      const shown = await signInFor("/v1/oauth/authorize?client_id=x&state=%22%3E%3Cb%3E");
      expect(shown).toMatchObject({ status: 200, path: "/sign-in", title: "One moment" });
      expect(shown.text).toContain('content="0; url=/v1/oauth/authorize?client_id=x&amp;state=%22%3E%3Cb%3E"');
    });
  });

  describe("for the account", () => {
    test("require a sign-in, after which the user returns to them", async () => {
      for (const path of ["/account", "/device?user_code=X", "/consent?client_id=x"]) {
        const shown = await started.browser().open(path);
        expect(shown.title).toBe("Sign in");
        expect(new URL(shown.path, "http://x").searchParams.get("return_to")).toBe(path);
      }
      expect((await started.browser().open("/")).path).toBe("/sign-in");
      const browser = await signedIn();
      expect((await browser.open("/")).path).toBe("/account");
      expect((await browser.open("/sign-in")).path).toBe("/account");
    });

    test("show user input as text, whatever it is", async () => {
      const browser = await signedIn();
      const name = `<img src=x onerror=alert(1)> "O'Hara" & 🚢 ' OR 1=1; --`;
      const shown = await browser.submit("/account/name", { name });
      expect(shown).toMatchObject({ status: 200, path: "/account?done=name" });
      expect(shown.text).toContain("<dd>&lt;img src=x onerror=alert(1)&gt; &quot;O&#39;Hara&quot; &amp; 🚢");
      expect(shown.text).not.toContain("<img");
      for (const wrong of ["", " ", "x".repeat(81), "a\0b", "x".repeat(8000)]) {
        const refused = await browser.submit("/account/name", { name: wrong });
        expect(refused.status).toBe(422);
        expect(errorOf(refused, "name")).toMatch(/^Must /);
      }
      expect((await browser.submit("/account/name", { name: "x".repeat(10_000) })).status).toBe(400);
      await browser.open("/account");
      await browser.submit("/account/name", { name: "Ann" });
    });

    test("set a first password without ending sessions, and a later one ending them", async () => {
      await started.admin.createUser({ ...ann, email: "carl@example.org" });
      const { token } = await started.admin.createToken({ email: "carl@example.org" });
      const status = async (): Promise<number> =>
        (await fetch(`${started.server.platformUrl}/v1/me`, { headers: { authorization: `Bearer ${token}` } })).status;
      const first = await setPassword("carl@example.org", PASSWORD);
      expect(first.path).toBe("/account?done=password_set");
      expect(first.text).not.toContain("signed out everywhere else.</p>\n");
      expect(await status()).toBe(200);
      expect((await setPassword("carl@example.org", "another long password")).path).toBe("/account?done=reset");
      expect(await status()).toBe(401);
    });

    test("change a password if the current one is given, and end all other sessions", async () => {
      const [here, elsewhere] = [await signedIn(), await signedIn()];
      const wrong = await here.submit("/account/password", { current: "not it", next: "another long password" });
      expect(errorOf(wrong, "current")).toBe("This is not your current password.");
      const weak = await here.submit("/account/password", { current: PASSWORD, next: "short" });
      expect(errorOf(weak, "next")).toMatch(/at least 10 characters/);
      const done = await here.submit("/account/password", { current: PASSWORD, next: "another long password" });
      expect(done).toMatchObject({ status: 200, path: "/account?done=password" });
      expect((await elsewhere.open("/account")).title).toBe("Sign in");
      await signedIn(ann.email, "another long password");
      await setPassword(ann.email, PASSWORD);
    });

    test("list the user's sessions, and end only the chosen one", async () => {
      const [here, elsewhere] = [await signedIn(), await signedIn()];
      await here.open("/account");
      const ids = here.forms().flatMap(({ hidden }) => hidden["session"] ?? []);
      expect(ids.length).toBeGreaterThanOrEqual(1);
      const { hidden } = here.form("/account/sessions");
      const foreign = await here.post("/account/sessions", { ...hidden, session: "sis_00000000000000000000000000" });
      expect(foreign.status).toBe(404);
      await here.open("/account");
      for (const session of ids) await here.post("/account/sessions", { ...hidden, session });
      expect((await here.open("/account")).title).toBe("Your account");
      expect((await elsewhere.open("/account")).title).toBe("Sign in");
    });
  });

  test("return the same errors as the API for unknown pages and methods", async () => {
    expect((await fetch(`${started.server.platformUrl}/sign-in`, { method: "PUT" })).status).toBe(405);
    expect((await fetch(`${started.server.platformUrl}/sign-in/nobody`, { method: "GET" })).status).toBe(405);
    expect((await fetch(`${started.server.platformUrl}/account/x`)).status).toBe(404);
  });
});

describe("an unknown path or an invalid request:", () => {
  let started: Started;
  beforeAll(async () => {
    started = await start();
  });
  afterAll(() => started.stop());

  const ask = (path: string, accept?: string): Promise<Response> =>
    fetch(started.server.platformUrl + path, { headers: accept === undefined ? {} : { accept } });
  const BROWSERS = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

  test.each([
    ["/nowhere", 404, "This link does not work"],
    ["/v1/nowhere", 404, "This link does not work"],
    ["/v1/me", 401, "That did not work"],
    ["/account/x", 404, "This link does not work"],
    ["/v1/oauth/authorize", 400, "That did not work"],
    ["/v1/oauth/authorize?client_id=nobody&response_type=code", 400, "That did not work"],
  ])("%s is a page for browsers and JSON for programs", async (path, status, title) => {
    const page = await ask(path, BROWSERS);
    expect(page.status).toBe(status);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(page.headers.get("vary")).toBe("Accept");
    const text = await page.text();
    expect(text).toContain(`<title>${title} · Fairlead</title>`);
    expect(text).not.toContain('{"error"');
    for (const accept of [undefined, "*/*", "application/json", "text/html;q=0"]) {
      const answer = await ask(path, accept);
      expect([answer.status, answer.headers.get("content-type")]).toEqual([status, "application/json; charset=utf-8"]);
      expect(answer.headers.get("content-security-policy")).toBeNull();
    }
  });

  test("what was sent cannot become markup", async () => {
    const text = await (await ask("/v1/oauth/authorize?client_id=%3Cscript%3E", BROWSERS)).text();
    expect(text).not.toContain("<script>");
  });
});

describe("under another name of this host,", () => {
  const ask = (url: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
    fetch(url, { redirect: "manual", headers });

  test("pages redirect to the public URL before a password is typed, once", async () => {
    const started = await start();
    const { platformUrl } = started.server;
    const local = platformUrl.replace("127.0.0.1", "localhost");
    for (const path of ["/sign-in", "/device?user_code=ABCD-EFGH", "/reset/fli_x", "/account"]) {
      const { status, headers } = await ask(local + path);
      const mark = path.includes("?") ? "&moved=1" : "?moved=1";
      expect([path, status, headers.get("location")]).toEqual([path, 302, platformUrl + path + mark]);
      expect(headers.get("set-cookie")).toBeNull();
    }
    expect((await ask(`${local}/sign-in?moved=1`)).status).toBe(200);
    expect((await ask(`${local}/sign-in`, { "x-forwarded-for": "192.0.2.1" })).status).toBe(200);
    expect((await ask(`${platformUrl}/sign-in`)).status).toBe(200);
    expect((await ask(`${local}/v1/me`)).status).toBe(401);
    await started.stop();
  });
});

test("guessing a password is rate limited, with a clear message and without affecting other users", async () => {
  const started = await start({ FAIRLEAD_RATE_LIMITS_SIGN_INS_PER_ADDRESS_AND_ACCOUNT: "2" });
  const browser = started.browser();
  await browser.open("/sign-in");
  const guess = (email: string): Promise<Shown> => {
    const { hidden } = browser.form("/sign-in");
    return browser.post("/sign-in", { ...hidden, email, password: "a guess" });
  };
  expect([(await guess("ann@example.org")).status, (await guess("ANN@example.org ")).status]).toEqual([422, 422]);
  const refused = await guess("ann@example.org");
  expect(refused).toMatchObject({ status: 429, title: "Too many attempts" });
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  await browser.open("/sign-in");
  expect((await guess("bob@example.org")).status).toBe(422);
  await started.stop();
});
