import { hash } from "@node-rs/argon2";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openMemoryStore, STORES } from "../../testing.fixture.ts";
import { BROWSER, cookieOf, openSignInHost, PASSWORD, type SignInHost } from "./sign-in.fixture.ts";
import type { SignedIn } from "./sign-in.ts";

const EMAIL = "ann@example.org";

describe.each(STORES)("sign-in on $name:", ({ open }) => {
  let host: SignInHost;
  let userId: string;
  beforeEach(async () => {
    host = await openSignInHost(open);
    userId = (await host.addUser(EMAIL)).id;
  });
  afterEach(async () => {
    vi.useRealTimers();
    await host.close();
  });

  const signIn = (email = EMAIL, password = PASSWORD): Promise<SignedIn> =>
    host.signIn.signInWithPassword({ email, password, caller: BROWSER });
  const known = async (signedIn: SignedIn): Promise<boolean> =>
    (await host.signIn.sessionOfCookie(cookieOf(signedIn))) !== null;

  test("the correct password opens a session, which its cookie identifies", async () => {
    const signedIn = await signIn(" Ann@Example.ORG ");
    expect(signedIn.session).toMatchObject({ userId, userAgent: BROWSER.userAgent, address: "192.0.2.7" });
    expect(await host.signIn.sessionOfCookie(`a=b; ${cookieOf(signedIn)}; c=d`)).toEqual(signedIn.session);
    expect(await host.sessions.list(userId)).toEqual([signedIn.session]);
    expect(signedIn.setCookies).toHaveLength(1);
    expect(signedIn.setCookies[0]).toMatch(
      /^fairlead_session=[^;]+; Max-Age=2592000; Path=\/; HttpOnly; SameSite=Lax$/,
    );
  });

  test("whatever is wrong, the response is the same, and it is recorded", async () => {
    const refusals = await Promise.all(
      [
        [EMAIL, "correct horse battery stapler"],
        ["nobody@example.org", PASSWORD],
        ["not an address", PASSWORD],
        ["", ""],
        [EMAIL, "x".repeat(10_000)],
        ["' or 1=1 --", "' or 1=1 --"],
        ["\0", "\0"],
        [`${"a".repeat(10_000)}@example.org`, PASSWORD],
      ].map(([email, password]) => signIn(email, password).catch((error: unknown) => error)),
    );
    const messages = new Set(refusals.map((error) => (error instanceof Error ? error.message : "signed in")));
    expect([...messages]).toEqual(["The email address or password is wrong."]);
    for (const error of refusals) expect(error).toMatchObject({ code: "invalid_credential" });
    const rows = await host.store.db.selectFrom("audit_event").selectAll().execute();
    expect(rows.filter(({ action }) => action === "session.sign_in_failed")).toHaveLength(refusals.length);
    expect(JSON.stringify(rows)).not.toMatch(/correct horse|nobody@|or 1=1/);
  });

  test("a hash with older parameters is replaced when its password is used", async () => {
    const weak = await hash(PASSWORD, { memoryCost: 8192, timeCost: 1, parallelism: 1 });
    await host.store.db.updateTable("account").set({ password: weak }).execute();
    await signIn();
    const { password } = await host.store.db.selectFrom("account").select("password").executeTakeFirstOrThrow();
    expect(password).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    await signIn();
  });

  test("signing out ends the session, and other sessions continue", async () => {
    const [first, second] = [await signIn(), await signIn()];
    const ended: string[] = [];
    host.sessions.listen((ids) => ended.push(...ids));
    const cookies = await host.signIn.signOut(cookieOf(first), BROWSER.origin);
    expect(cookies[0]).toMatch(/^fairlead_session=; Max-Age=0; Path=\//);
    expect([await known(first), await known(second)]).toEqual([false, true]);
    expect(ended).toEqual([first.session.id]);
    expect(await host.signIn.signOut(undefined, BROWSER.origin)).toHaveLength(1);
  });

  test("a session expires at its time", async () => {
    const signedIn = await signIn();
    vi.useFakeTimers({ toFake: ["Date"], now: signedIn.session.expiresAt - 1000 });
    expect(await known(signedIn)).toBe(true);
    vi.setSystemTime(signedIn.session.expiresAt + 1);
    expect(await known(signedIn)).toBe(false);
  });

  test.each([
    "fairlead_session=",
    "fairlead_session=x.y",
    "fairlead_session=%00",
    "fairlead_session=' or 1=1 --",
    `fairlead_session=${"a".repeat(5000)}`,
    "",
    ";;;=",
  ])("the cookie %j identifies no session", async (cookies) => {
    expect(await host.signIn.sessionOfCookie(cookies)).toBeNull();
  });

  test("a cookie is valid only with its signature, which the store alone cannot make", async () => {
    const signedIn = await signIn();
    const { token } = await host.store.db.selectFrom("session").select("token").executeTakeFirstOrThrow();
    const cookie = cookieOf(signedIn);
    expect(decodeURIComponent(cookie)).toContain(token);
    expect(await host.signIn.sessionOfCookie(`fairlead_session=${token}`)).toBeNull();
    const changed = cookie.slice(0, -6) + (cookie.at(-6) === "A" ? "B" : "A") + cookie.slice(-5);
    expect(await host.signIn.sessionOfCookie(changed)).toBeNull();
  });

  test("changing the password replaces the old one, keeps this session and ends all others", async () => {
    const [here, there] = [await signIn(), await signIn()];
    const next = "a wholly new pass phrase";
    const change = (current: string, chosen = next): Promise<void> =>
      host.signIn.changePassword(here.session, { current, next: chosen, origin: BROWSER.origin });
    await expect(change("wrong")).rejects.toMatchObject({ code: "invalid_request", param: "current" });
    await expect(change(PASSWORD, "short")).rejects.toMatchObject({ code: "invalid_request", param: "password" });
    await expect(change(PASSWORD, EMAIL)).rejects.toMatchObject({ param: "password" });
    expect(await known(there)).toBe(true);
    await change(PASSWORD);
    expect([await known(here), await known(there)]).toEqual([true, false]);
    await expect(signIn()).rejects.toMatchObject({ code: "invalid_credential" });
    await signIn(EMAIL, next);
    expect(await host.audited()).toContain("user.password_change");
  });

  test("setting a password with a link ends every session, and a failed transaction changes nothing", async () => {
    const signedIn = await signIn();
    const password = await host.signIn.preparePassword(
      { email: EMAIL, password: "a wholly new pass phrase" },
      BROWSER.origin,
    );
    const actor = { kind: "system", name: "sign_in" } as const;
    const failing = host.store.db.transaction().execute(async (transaction) => {
      await host.signIn.setPassword(transaction, { userId, password, actor });
      throw new Error("the link was spent");
    });
    await expect(failing).rejects.toThrow("spent");
    expect(await known(signedIn)).toBe(true);
    await signIn();
    await host.store.db
      .transaction()
      .execute((transaction) => host.signIn.setPassword(transaction, { userId, password, actor }));
    expect(await known(signedIn)).toBe(false);
    await signIn(EMAIL, "a wholly new pass phrase");
  });

  test("setting a first password with a link ends no session, since no earlier password can be known", async () => {
    const { id } = await host.addUser("carl@example.org", null);
    const before = await host.signIn.openSession(id, BROWSER, "provider");
    const password = await host.signIn.preparePassword(
      { email: EMAIL, password: "a first pass phrase" },
      BROWSER.origin,
    );
    const actor = { kind: "system", name: "sign_in" } as const;
    const ended = await host.store.db
      .transaction()
      .execute((transaction) => host.signIn.setPassword(transaction, { userId: id, password, actor }));
    expect(ended).toEqual([]);
    expect(await known(before)).toBe(true);
  });

  test("an address has one user, even after simultaneous requests to create it", async () => {
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => host.addUser("bob@example.org")));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "already_exists" });
    }
    await signIn("bob@example.org");
  });

  test("a user without a password cannot sign in with one", async () => {
    const actor = { kind: "system", name: "server" } as const;
    const input = { email: "bob@example.org", name: "Bob", platformAdmin: false, password: null, actor };
    const bob = await host.store.db.transaction().execute((transaction) => host.signIn.createUser(transaction, input));
    expect([await host.signIn.hasPassword(bob.id), await host.signIn.hasPassword(userId)]).toEqual([false, true]);
    for (const password of ["", PASSWORD]) {
      await expect(signIn("bob@example.org", password)).rejects.toMatchObject({ code: "invalid_credential" });
    }
  });

  test("hostile names and user agents are kept as text", async () => {
    const hostile = `<script>"'); drop table session; -- ${"🦊".repeat(3000)}`;
    const signedIn = await host.signIn.openSession(userId, { ...BROWSER, userAgent: hostile }, "password");
    expect(signedIn.session.userAgent).toBe(hostile.slice(0, 256));
    expect(await known(signedIn)).toBe(true);
  });
});

test("nobody signs in with a password if passwords are off", async () => {
  const host = await openSignInHost(openMemoryStore, { password: false });
  await host.addUser(EMAIL);
  const tried = host.signIn.signInWithPassword({ email: EMAIL, password: PASSWORD, caller: BROWSER });
  await expect(tried).rejects.toMatchObject({ code: "permission_denied" });
  await host.close();
});
