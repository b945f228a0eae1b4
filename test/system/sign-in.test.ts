import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { RealProvider } from "../../packages/control-plane/src/people/sign-in/oidc/real-provider.fixture.ts";
import { apiAt } from "../../scripts/quickstart-steps/fairlead.ts";
import { describeWithBrowser, expectAccessible, Person } from "../support/browser.ts";
import { StartedServer } from "../support/started-server.ts";
import { waitFor } from "../support/wait-for.ts";

const createdProject = z.object({ project: z.object({ id: z.string() }) });
const invitedMember = z.object({ url: z.url() });
const deviceAnswer = z.object({
  device_code: z.string(),
  user_code: z.string(),
  verification_uri: z.string(),
  verification_uri_complete: z.string(),
});
const tokenAnswer = z.object({ access_token: z.string() });

/** What people see, in a real browser that runs no script, on a screen as small as they come. */
describeWithBrowser("signing in", (browser) => {
  const ann = { email: "ann@example.org", name: "Ann <b>O'Hara</b> & “Co”", password: "correct horse battery" };
  const bob = { email: "bob@example.org", name: "Bob", password: "three more brown foxes" };
  const provider = new RealProvider();
  let server: StartedServer;
  let annThere: Person;
  let bobThere: Person;

  beforeAll(async () => {
    await provider.listen();
    const company = { id: "company", name: "Example Inc.", issuer: provider.url, clientId: "fairlead" };
    server = await StartedServer.start({ signIn: { oidc: [{ ...company, clientSecret: "a secret & more" }] } });
    await provider.serve([`${server.url}/sign-in/company/callback`]);
    annThere = await Person.arrive(browser());
    bobThere = await Person.arrive(browser());
  });
  afterAll(async () => {
    await provider.close();
    await server.remove();
  });

  const button = (page: Page, name: string): Promise<void> => page.getByRole("button", { name, exact: true }).click();
  const path = (page: Page): string => new URL(page.url()).pathname;
  const heading = (page: Page): Promise<string | null> => page.locator("h1").textContent();
  const signIn = async (page: Page, { email, password }: typeof ann): Promise<void> => {
    await page.goto(`${server.url}/sign-in`);
    await page.getByLabel("Email address").fill(email);
    await page.getByLabel("Password").fill(password);
    await button(page, "Sign in");
  };
  const tokenOf = async (email: string): Promise<string> =>
    (await server.asOperator((admin) => admin.createToken({ email }))).token;
  const postForm = (to: string, fields: Record<string, string>): Promise<Response> =>
    fetch(server.url + to, { method: "POST", body: new URLSearchParams(fields) });
  const isSignedIn = async (token: string): Promise<boolean> =>
    (await fetch(`${server.url}/v1/me`, { headers: { authorization: `Bearer ${token}` } })).ok;

  test("starts with a setup link whose form creates the administrator, and which opening does not use up", async () => {
    const { page } = annThere;
    const link = await waitFor(
      "the set-up link",
      5_000,
      async () => /http\S+\/set-up\/fli_[\w-]+/.exec(server.log)?.[0],
    );
    for (const _ of [1, 2, 3]) expect((await fetch(link)).status).toBe(200);
    await page.goto(link);
    await expectAccessible(page);
    await page.getByLabel("Email address").fill(ann.email);
    await page.getByLabel("Your name").fill(ann.name);
    await page.getByLabel("New password").fill("password123");
    await button(page, "Create administrator account");
    expect(await page.locator("#password-error").textContent()).toMatch(/too common/);
    expect(await page.getByLabel("Email address").inputValue()).toBe(ann.email);
    await expectAccessible(page);
    await page.getByLabel("New password").fill(ann.password);
    await button(page, "Create administrator account");
    expect(path(page)).toBe("/account");
    expect(await page.locator("dl").textContent()).toContain("Platform administrator");
    expect(await page.locator("dl").textContent()).toContain(ann.name);
    await expectAccessible(page);
    await page.goto(link);
    expect(await heading(page)).toBe("This link does not work");
    await expectAccessible(page);
  });

  test("lets an invited person create an account and become a member", async () => {
    const api = apiAt(server.url, await tokenOf(ann.email));
    const { project } = await api.create("/v1/projects", { name: "Harbour <i>&" }, createdProject);
    const invitation = { email: bob.email, role: "member" };
    const { url } = await api.create(`/v1/projects/${project.id}/members`, invitation, invitedMember);
    await annThere.page.goto(url);
    expect(await heading(annThere.page)).toBe("This invitation is for a different user");
    await expectAccessible(annThere.page);
    const { page } = bobThere;
    await page.goto(url);
    expect(await page.locator("main").textContent()).toContain("Harbour <i>& as a member");
    await expectAccessible(page);
    await page.getByLabel("Your name").fill(bob.name);
    await page.getByLabel("New password").fill(bob.password);
    await button(page, "Create account and join");
    expect(path(page)).toBe("/account");
    expect(await page.getByRole("status").textContent()).toContain("member of the project Harbour <i>&");
    await page.goto(url);
    expect(await page.getByRole("status").textContent()).toContain("member of the project Harbour <i>&");
    await annThere.page.goto(url);
    expect(await heading(annThere.page)).toBe("This link does not work");
  });

  test("works again after signing out, with a wrong password in between", async () => {
    const { page } = bobThere;
    await page.goto(`${server.url}/account`);
    await page.locator("main").getByRole("button", { name: "Sign out", exact: true }).first().click();
    expect(path(page)).toBe("/sign-in");
    await page.goto(`${server.url}/account`);
    expect(page.url()).toBe(`${server.url}/sign-in?return_to=%2Faccount`);
    await signIn(page, { ...bob, password: "not my password" });
    expect(await page.getByRole("alert").textContent()).toBe("The email address or password is wrong.");
    expect(await page.getByLabel("Email address").inputValue()).toBe(bob.email);
    expect(await page.getByLabel("Password").inputValue()).toBe("");
    await expectAccessible(page);
    await signIn(page, bob);
    expect(path(page)).toBe("/account");
  });

  test("works with the keyboard alone", async () => {
    const keys = await Person.arrive(browser());
    const { page } = keys;
    await page.goto(`${server.url}/sign-in`);
    await page.locator("#email:focus").waitFor();
    await page.keyboard.type(ann.email);
    await page.keyboard.press("Tab");
    await page.keyboard.type(ann.password);
    await page.keyboard.press("Tab");
    expect(await page.locator(":focus").textContent()).toBe("Sign in");
    expect(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
    await page.keyboard.press("Enter");
    await page.waitForURL(`${server.url}/account`);
    expect(keys.complaints).toEqual([]);
    await keys.leave();
  });

  test("works through a reset link, which sets a password and signs the person out everywhere else", async () => {
    const { url } = await server.asOperator((admin) => admin.resetLink({ email: bob.email }));
    await bobThere.page.reload();
    expect(path(bobThere.page)).toBe("/account");
    const elsewhere = await Person.arrive(browser());
    const { page } = elsewhere;
    await page.goto(url);
    await expectAccessible(page);
    await page.getByLabel("New password").fill("a password after the reset");
    await button(page, "Set password");
    expect(await page.getByRole("status").textContent()).toContain("Your password was set");
    await bobThere.page.reload();
    expect(path(bobThere.page)).toBe("/sign-in");
    await signIn(bobThere.page, bob);
    expect(await bobThere.page.getByRole("alert").count()).toBe(1);
    await page.goto(url);
    expect(await heading(page)).toBe("This link does not work");
    expect(elsewhere.complaints).toEqual([]);
    await elsewhere.leave();
  });

  test("works through a provider's button, for a new person and for one who connects the provider", async () => {
    provider.person = { sub: "carol", email: "carol@example.org", email_verified: true, name: "Carol" };
    const carol = await Person.arrive(browser());
    await carol.page.goto(`${server.url}/sign-in`);
    await button(carol.page, "Continue with Example Inc.");
    await carol.page.waitForURL(`${server.url}/account`);
    expect(await carol.page.locator("dl").textContent()).toContain("carol@example.org");
    expect(await carol.page.locator("#password-title").count()).toBe(0);
    await expectAccessible(carol.page);
    expect(carol.complaints).toEqual([]);
    await carol.leave();
    provider.person = { sub: "ann at work", email: "ann@work.example", email_verified: true };
    await annThere.page.goto(`${server.url}/account`);
    await button(annThere.page, "Connect Example Inc.");
    await annThere.page.waitForURL(`${server.url}/account?done=connected`);
    await button(annThere.page, "Disconnect Example Inc.");
    expect(await annThere.page.getByRole("status").textContent()).toBe("The provider is disconnected.");
  });

  test("works on a device by its code, until the person signs the device out", async () => {
    const { page } = annThere;
    const client = { client_id: "fairlead-cli", scope: "platform offline_access" };
    const code = deviceAnswer.parse(await (await postForm("/v1/oauth/device/code", client)).json());
    await page.goto(code.verification_uri);
    await expectAccessible(page);
    await page.getByLabel("Code").fill("XXXX-XXXX");
    await button(page, "Continue");
    expect(await page.locator("#user_code-error").textContent()).toMatch(/This code is invalid/);
    await expectAccessible(page);
    await page.getByLabel("Code").fill(code.user_code.toLowerCase().replace("-", " "));
    await button(page, "Continue");
    expect(await heading(page)).toBe("Allow Fairlead CLI to act as you?");
    expect(await page.locator("p.code").textContent()).toBe(code.user_code);
    await expectAccessible(page);
    await button(page, "Allow");
    expect(await page.locator("#started-error").textContent()).toMatch(/started this yourself/);
    await expectAccessible(page);
    await page.getByLabel(/^I just started this myself/).check();
    await button(page, "Allow");
    expect(await heading(page)).toBe("The program is connected");
    await expectAccessible(page);
    const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
    const answer = await postForm("/v1/oauth/token", {
      client_id: "fairlead-cli",
      grant_type,
      device_code: code.device_code,
    });
    const { access_token: token } = tokenAnswer.parse(await answer.json());
    expect(await isSignedIn(token)).toBe(true);
    await page.goto(`${server.url}/account`);
    await page.getByRole("button", { name: /^Sign out Fairlead CLI/ }).click();
    expect(await page.getByRole("status").textContent()).toBe("That session was signed out.");
    expect(await isSignedIn(token)).toBe(false);
  });

  test("works in the browser for a program on the same machine with a loopback address", async () => {
    const { page } = annThere;
    const answers: URL[] = [];
    const loopback = createServer((request, response) => {
      answers.push(new URL(request.url ?? "", "http://127.0.0.1"));
      response.setHeader("content-type", "text/plain").end("done");
    }).listen(0, "127.0.0.1");
    await once(loopback, "listening");
    const address = loopback.address();
    const port = typeof address === "object" ? address?.port : 0;
    const verifier = randomBytes(32).toString("base64url");
    const query = new URLSearchParams({
      client_id: "fairlead-cli",
      redirect_uri: `http://127.0.0.1:${port}/callback`,
      response_type: "code",
      scope: "platform",
      state: "s",
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256",
    });
    await page.goto(`${server.url}/v1/oauth/authorize?${query.toString()}`);
    expect(path(page)).toBe("/consent");
    await expectAccessible(page);
    await button(page, "Allow");
    await page.waitForURL(/\/callback\?/);
    const given = answers.find(({ pathname }) => pathname === "/callback")?.searchParams;
    expect(given?.get("state")).toBe("s");
    const grant = { grant_type: "authorization_code", client_id: "fairlead-cli", code: given?.get("code") ?? "" };
    const redirect_uri = `http://127.0.0.1:${port}/callback`;
    await page.goto("about:blank");
    loopback.close();
    const answer = await postForm("/v1/oauth/token", { ...grant, redirect_uri, code_verifier: verifier });
    expect(await isSignedIn(tokenAnswer.parse(await answer.json()).access_token)).toBe(true);
  });

  test("causes no script, style or policy errors on any page", () => {
    expect([...annThere.complaints, ...bobThere.complaints]).toEqual([]);
  });
});
