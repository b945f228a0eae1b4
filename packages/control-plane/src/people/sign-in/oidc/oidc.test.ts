import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { openMemoryStore, STORES } from "../../../testing.fixture.ts";
import { BROWSER, cookieOf, openSignInHost, PASSWORD, type SignInHost } from "../sign-in.fixture.ts";
import { oidcCallbackPath } from "../sign-in.ts";
import { signInSettings } from "../sign-in-config.ts";
import { type Person, RealProvider, walk } from "./real-provider.fixture.ts";

type Completed = Awaited<ReturnType<SignInHost["oidc"]["complete"]>>;

const provider = new RealProvider();
beforeAll(() => provider.listen());
afterAll(() => provider.close());

const settingsFor = (issuer: string): ReturnType<typeof signInSettings.parse> =>
  signInSettings.parse({
    oidc: [{ id: "acme", name: "Acme", issuer, clientId: "fairlead", clientSecret: "a secret & more" }],
  });

describe.each(STORES)("OIDC sign-in on $name:", ({ open }) => {
  let host: SignInHost;
  beforeEach(async () => {
    host = await openSignInHost(open, settingsFor(provider.url));
    await provider.serve([host.url + oidcCallbackPath("acme")]);
    await host.addUser("first@example.org");
  });
  afterEach(async () => {
    vi.useRealTimers();
    await host.close();
  });

  interface Flow {
    readonly back: URL;
    readonly cookies: string;
  }

  async function begin(linkTo: Completed["session"] | null = null): Promise<Flow> {
    const { location, setCookies } = await host.oidc.begin({ providerId: "acme", returnTo: "/account", linkTo });
    return { back: await walk(location, host.url), cookies: cookieOf({ setCookies }) };
  }

  const complete = ({ back, cookies }: Flow): Promise<Completed> =>
    host.oidc.complete({ providerId: "acme", query: back.searchParams, cookies, caller: BROWSER });

  const signIn = async (person: Person): Promise<Completed> => {
    provider.person = person;
    return complete(await begin());
  };

  const ann: Person = { sub: "ann", email: "Ann@Example.org", email_verified: true, name: "Ann Smith" };

  test("a new person becomes a user, and remains the same user even if their address changes", async () => {
    const first = await signIn(ann);
    expect(first).toMatchObject({ returnTo: "/account", linked: false });
    expect(await host.users.get(first.session.userId)).toMatchObject({
      email: "ann@example.org",
      name: "Ann Smith",
      platformAdmin: false,
    });
    expect(await host.signIn.sessionOfCookie(cookieOf(first))).toEqual(first.session);
    expect(first.setCookies.at(-1)).toMatch(/^fairlead_oidc=; Max-Age=0;/);
    const second = await signIn({ ...ann, email: "ann.smith@example.org" });
    expect(second.session.userId).toBe(first.session.userId);
    expect(second.session.id).not.toBe(first.session.id);
  });

  test("claims may come in the ID token, or only from the userinfo endpoint", async () => {
    for (const inIdToken of [true, false]) {
      await provider.serve([host.url + oidcCallbackPath("acme")], inIdToken);
      const email = `in-id-token-${inIdToken}@example.org`;
      const { session } = await signIn({ ...ann, sub: email, email });
      expect(await host.users.get(session.userId)).toMatchObject({ email });
    }
  });

  test.each([
    [{ email_verified: false }, /has not verified/],
    [{ email_verified: "false" }, /has not verified/],
    [{ email_verified: undefined }, /has not verified/],
    [{ email: undefined }, /did not provide your email/],
    [{ email: '\'; drop table "user"; --' }, /did not provide your email/],
  ] as [Partial<Person>, RegExp][])("with %j nobody signs in", async (change, reason) => {
    const person = { ...ann, sub: `unverified ${JSON.stringify(change)}`, ...change } as Person;
    await expect(signIn(person)).rejects.toMatchObject({
      code: "permission_denied",
      message: expect.stringMatching(reason),
    });
    expect(await host.audited()).toEqual(["user.create"]);
  });

  test("a hostile name is kept as text, and an unusable one is replaced by the address", async () => {
    const name = `<img src=x> '); drop table "user"; --`;
    const one = await signIn({ ...ann, sub: "hostile", email: "hostile@example.org", name });
    expect((await host.users.get(one.session.userId)).name).toBe(name);
    const two = await signIn({ ...ann, sub: "long", email: "long@example.org", name: "x".repeat(10_000) });
    expect((await host.users.get(two.session.userId)).name).toBe("long@example.org");
  });

  test("an existing user is not taken over: they sign in as before, and link the account", async () => {
    const bob = await host.addUser("bob@example.org");
    const person = { ...ann, sub: "bob", email: "bob@example.org" };
    await expect(signIn(person)).rejects.toMatchObject({
      code: "permission_denied",
      message: expect.stringContaining("connect Acme on your account page"),
    });
    const local = await host.signIn.signInWithPassword({ email: bob.email, password: PASSWORD, caller: BROWSER });
    const flow = await begin(local.session);
    const linked = await complete({ ...flow, cookies: `${cookieOf(local)}; ${flow.cookies}` });
    expect(linked).toMatchObject({ linked: true, session: { id: local.session.id } });
    expect(await host.oidc.linkedAccounts(bob.id)).toMatchObject([{ providerId: "acme" }]);
    expect((await signIn(person)).session.userId).toBe(bob.id);
    expect(await host.audited()).toContain("user.link");
  });

  test("an account is linked to one user, and only in the session that started it", async () => {
    const owner = await signIn(ann);
    const local = await host.signIn.signInWithPassword({
      email: "first@example.org",
      password: PASSWORD,
      caller: BROWSER,
    });
    const flow = await begin(local.session);
    await expect(complete(flow)).rejects.toMatchObject({ code: "invalid_request" });
    const again = await begin(local.session);
    await expect(complete({ ...again, cookies: `${cookieOf(owner)}; ${again.cookies}` })).rejects.toMatchObject({
      code: "invalid_request",
    });
    const third = await begin(local.session);
    await expect(complete({ ...third, cookies: `${cookieOf(local)}; ${third.cookies}` })).rejects.toMatchObject({
      code: "already_exists",
    });
  });

  test("the last sign-in method cannot be unlinked, but others can", async () => {
    const { session } = await signIn(ann);
    const unlink = { userId: session.userId, providerId: "acme", origin: BROWSER.origin };
    await expect(host.oidc.unlink(unlink)).rejects.toMatchObject({ code: "permission_denied" });
    const password = await host.signIn.preparePassword(
      { email: "ann@example.org", password: PASSWORD },
      BROWSER.origin,
    );
    const actor = { kind: "system", name: "server" } as const;
    await host.store.db
      .transaction()
      .execute((transaction) => host.signIn.setPassword(transaction, { userId: session.userId, password, actor }));
    await host.oidc.unlink(unlink);
    expect(await host.oidc.linkedAccounts(session.userId)).toEqual([]);
    await expect(host.oidc.unlink(unlink)).rejects.toMatchObject({ code: "not_found" });
  });

  test("a callback that this browser did not start, or that took too long, is rejected", async () => {
    provider.person = ann;
    const flow = await begin();
    const state = new URL(flow.back);
    state.searchParams.set("state", "another");
    const other = (await begin()).cookies;
    const refused = { code: "invalid_request" };
    await expect(complete({ ...flow, back: state })).rejects.toMatchObject(refused);
    for (const cookies of ["", "fairlead_oidc=", "fairlead_oidc=v1.a.b.c", other]) {
      await expect(complete({ ...flow, cookies })).rejects.toMatchObject(refused);
    }
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 601_000 });
    await expect(complete(flow)).rejects.toMatchObject(refused);
    expect(await host.audited()).toEqual(["user.create"]);
  });

  test("a code that is wrong, spent, or from another issuer signs nobody in", async () => {
    provider.person = ann;
    const wrong = await begin();
    wrong.back.searchParams.set("code", "made up");
    await expect(complete(wrong)).rejects.toMatchObject({ code: "invalid_credential" });
    const mixed = await begin();
    mixed.back.searchParams.set("iss", "https://evil.example");
    await expect(complete(mixed)).rejects.toMatchObject({ code: "invalid_credential" });
    const good = await begin();
    await complete(good);
    await expect(complete(good)).rejects.toMatchObject({ code: "invalid_credential" });
  });

  test("a user who cancels at the provider sees a message saying so", async () => {
    const flow = await begin();
    flow.back.searchParams.delete("code");
    flow.back.searchParams.set("error", "access_denied");
    await expect(complete(flow)).rejects.toMatchObject({ code: "permission_denied" });
  });

  test("an unknown provider is not found", async () => {
    const tried = host.oidc.begin({ providerId: "__proto__", returnTo: "/", linkTo: null });
    await expect(tried).rejects.toMatchObject({ code: "not_found" });
  });
});

test("nobody signs in with a provider before the platform is set up", async () => {
  const host = await openSignInHost(openMemoryStore, settingsFor(provider.url));
  await provider.serve([host.url + oidcCallbackPath("acme")]);
  provider.person = { sub: "early", email: "early@example.org", email_verified: true };
  const { location, setCookies } = await host.oidc.begin({ providerId: "acme", returnTo: "/", linkTo: null });
  const { searchParams: query } = await walk(location, host.url);
  const tried = host.oidc.complete({ providerId: "acme", query, cookies: cookieOf({ setCookies }), caller: BROWSER });
  await expect(tried).rejects.toMatchObject({ code: "permission_denied" });
  expect(await host.users.hasAny()).toBe(false);
  await host.close();
});

describe("sign-in with a provider", () => {
  test("returns 503 while the provider is unreachable, and works as soon as it is back", async () => {
    const away = new RealProvider();
    await away.listen();
    const { url } = away;
    await away.close();
    const host = await openSignInHost(openMemoryStore, settingsFor(url));
    const begin = (): Promise<{ location: string }> =>
      host.oidc.begin({ providerId: "acme", returnTo: "/", linkTo: null });
    await expect(begin()).rejects.toMatchObject({ code: "unavailable", retryAfterSeconds: 10 });
    const back = new RealProvider();
    await back.listen(Number(new URL(url).port));
    await back.serve([host.url + oidcCallbackPath("acme")]);
    expect((await begin()).location.startsWith(`${url}/auth?`)).toBe(true);
    await back.close();
    await host.close();
  });

  test("is rejected if the provider names an issuer other than the configured one", async () => {
    await provider.serve([]);
    const host = await openSignInHost(openMemoryStore, settingsFor(provider.url.replace("127.0.0.1", "localhost")));
    const tried = host.oidc.begin({ providerId: "acme", returnTo: "/", linkTo: null });
    await expect(tried).rejects.toMatchObject({ code: "unavailable" });
    await host.close();
  });
});
