import { beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import type { FakeBrowser } from "./testing/fake-browser.ts";
import { alertIn, errorOf, PASSWORD, pathOf, type Started, start, VOID_LINK } from "./testing/started-pages.ts";

const projectSchema = z.object({ project: z.object({ id: z.string() }) });
const invitedSchema = z.object({ invitation: z.object({ id: z.string() }), url: z.string() });
const membersSchema = z.object({ members: z.array(z.object({ email: z.string(), role: z.string() })) });

describe("an invitation", () => {
  const bob = { email: "bob@example.org", name: "Bob", password: PASSWORD };
  let started: Started;
  let token: string;
  let projectId: string;
  let link: string;

  const call = async (method: string, path: string, body?: object): Promise<unknown> => {
    const answer = await fetch(started.server.platformUrl + path, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body ? { "content-type": "application/json" } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    expect(answer.status).toBe(200);
    return answer.json();
  };
  const invite = async (email = bob.email, role = "member"): Promise<{ link: string; id: string }> => {
    const answer = invitedSchema.parse(await call("POST", `/v1/projects/${projectId}/members`, { email, role }));
    return { link: pathOf(answer.url), id: answer.invitation.id };
  };
  const members = async (): Promise<string[]> => {
    const answer = membersSchema.parse(await call("GET", `/v1/projects/${projectId}/members`));
    return answer.members.map(({ email, role }) => `${email} ${role}`).toSorted();
  };
  const signedIn = async (email: string): Promise<FakeBrowser> => {
    const browser = started.browser();
    const reset = pathOf((await started.admin.resetLink({ email })).url);
    await browser.open(reset);
    await browser.submit(reset, { email, password: PASSWORD });
    return browser;
  };

  beforeEach(async () => {
    started = await start();
    await started.admin.createUser({ email: "ann@example.org", name: "Ann", platformAdmin: false });
    token = (await started.admin.createToken({ email: "ann@example.org" })).token;
    projectId = projectSchema.parse(await call("POST", "/v1/projects", { name: `"Harbour" <b>` })).project.id;
    link = (await invite()).link;
    return () => started.stop();
  });

  test("lets a new user create an account with the invited address, and no other", async () => {
    const browser = started.browser();
    const shown = await browser.open(link);
    expect(shown.text).toContain("<strong>&quot;Harbour&quot; &lt;b&gt;</strong> as a member");
    const wrong = await browser.submit(link, { ...bob, name: "", email: "eve@example.org" });
    expect(errorOf(wrong, "name")).toBe("Must not be empty.");
    expect(alertIn(wrong)).toBe("Something below needs to be corrected.");
    const weak = await browser.submit(link, { ...bob, password: "short" });
    expect(errorOf(weak, "password")).toMatch(/at least 10 characters/);
    const joined = await browser.submit(link, { ...bob, email: "eve@example.org" });
    expect(joined).toMatchObject({ status: 200, path: `/account?joined=${projectId}` });
    expect(joined.text).toContain("You are now a member of the project &quot;Harbour&quot; &lt;b&gt;.");
    expect(joined.text).toContain("<dd>bob@example.org</dd>");
    expect(await members()).toEqual(["ann@example.org owner", "bob@example.org member"]);
  });

  test("is not spent by being viewed, and works once; the user who accepted it may open it again", async () => {
    for (const _ of [1, 2]) expect((await started.browser().open(link)).status).toBe(200);
    const browser = started.browser();
    await browser.open(link);
    await browser.submit(link, bob);
    expect(await browser.open(link)).toMatchObject({ status: 200, path: `/account?joined=${projectId}` });
    const stranger = await started.browser().open(link);
    expect(stranger.status).toBe(404);
    expect(alertIn(stranger)).toBe(VOID_LINK);
  });

  test("asks a user who has an account to sign in, and then to join", async () => {
    await started.admin.createUser({ email: bob.email, name: bob.name, platformAdmin: false });
    const stranger = started.browser();
    await stranger.open(link);
    const told = await stranger.submit(link, bob);
    expect(alertIn(told)).toBe("There is already an account with this address. Sign in to join.");
    expect(told.text).toContain(`href="/sign-in?return_to=${encodeURIComponent(link)}"`);
    const browser = await signedIn(bob.email);
    expect(await browser.open(link)).toMatchObject({ status: 200, title: "Join the project" });
    const clicks = await Promise.all([browser.submit(link), browser.submit(link)]);
    expect(clicks.some(({ path }) => path === `/account?joined=${projectId}`)).toBe(true);
    expect(await members()).toContain("bob@example.org member");
  });

  test("for another user says so, and shows as little of their address as necessary", async () => {
    await started.admin.createUser({ email: "carol@example.org", name: "Carol", platformAdmin: false });
    const browser = await signedIn("carol@example.org");
    const shown = await browser.open(link);
    expect(shown.title).toBe("This invitation is for a different user");
    expect(shown.text).toContain("b…@example.org");
    expect(shown.text).not.toContain(bob.email);
    const { hidden } = browser.form("/sign-out");
    const forced = await browser.post(link, { form_token: hidden["form_token"] ?? "" });
    expect(forced.status).toBe(403);
    expect(await members()).toEqual(["ann@example.org owner"]);
    expect(await browser.open(link)).toMatchObject({ status: 200 });
    expect(await browser.submit("/sign-out")).toMatchObject({ path: link, title: "You are invited" });
  });

  test("that was revoked or replaced no longer works", async () => {
    const browser = started.browser();
    await browser.open(link);
    const second = await invite();
    expect((await browser.submit(link, bob)).status).toBe(404);
    await call("DELETE", `/v1/projects/${projectId}/invitations/${second.id}`);
    expect((await browser.open(second.link)).status).toBe(404);
    await expect(started.admin.resetLink({ email: bob.email })).rejects.toMatchObject({ code: "not_found" });
  });
});
