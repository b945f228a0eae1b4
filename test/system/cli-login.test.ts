import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { FakeBrowser } from "../../packages/control-plane/src/people/pages/testing/fake-browser.ts";
import { CommandLine } from "../support/command-line.ts";
import { StartedServer } from "../support/started-server.ts";
import { waitFor } from "../support/wait-for.ts";

const PASSWORD = "correct horse battery";
const CODE = /enter the code {2}(\S+)/;
const credentialsSchema = z.object({
  platforms: z.record(z.string(), z.object({ login: z.object({ accessToken: z.string(), refreshToken: z.string() }) })),
});

/** The command line against a real server, from signing in to signing out; people approve on the real pages. */
describe("a user of the command line", () => {
  let server: StartedServer;
  let ann: FakeBrowser;
  let laptop: CommandLine;

  beforeAll(async () => {
    server = await StartedServer.start();
    ann = new FakeBrowser(server.url);
    laptop = new CommandLine();
    const { url } = await server.asOperator((admin) => admin.setUpLink());
    const { pathname } = new URL(url);
    await ann.open(pathname);
    await ann.submit(pathname, { email: "ann@example.org", name: "Ann", password: PASSWORD });
  });
  afterAll(async () => {
    laptop.remove();
    await server.remove();
  });

  const tokens = (): { accessToken: string; refreshToken: string } => {
    const login = credentialsSchema.parse(JSON.parse(laptop.credentials)).platforms[server.url]?.login;
    if (login === undefined) throw new Error("nobody is signed in");
    return login;
  };
  const isGood = async (accessToken: string): Promise<boolean> =>
    (await fetch(`${server.url}/v1/me`, { headers: { authorization: `Bearer ${accessToken}` } })).ok;

  /** Reads the code from one screen and types it on the other. */
  async function signIn(decision: "allow" | "refuse"): ReturnType<CommandLine["run"]> {
    const login = laptop.start("login", "--base-url", server.url);
    await ann.open("/device");
    await ann.submit("/device", { user_code: (await login.noticed(CODE)).toLowerCase() });
    await ann.submit("/device/decision", { decision, ...(decision === "allow" ? { started: "yes" } : {}) });
    return login.finished;
  }

  test("signs in on the device page", async () => {
    expect(await signIn("allow")).toMatchObject({ code: 0, out: `signed in to ${server.url} as ann@example.org\n` });
    expect((await laptop.run("whoami")).out).toContain(`ann@example.org (Ann, usr_`);
  });

  test("sees that the login was denied on the page, and the earlier login stays valid", async () => {
    expect(await signIn("refuse")).toMatchObject({ code: 1, notes: expect.stringContaining("denied in the browser") });
    expect((await laptop.run("whoami")).code).toBe(0);
  });

  test("creates a project and works in it without naming it again", async () => {
    const { project } = z
      .object({ project: z.object({ id: z.string() }) })
      .parse(JSON.parse((await laptop.run("project", "create", "Research", "--json")).out));
    expect((await laptop.run("project", "use", project.id)).code).toBe(0);
    expect((await laptop.run("project", "list")).out).toContain(project.id);
    expect((await laptop.run("node", "list")).out).toContain("no nodes");
    expect((await laptop.run("whoami")).out).toMatch(/Research +owner/);
    expect((await laptop.run("audit")).out).toMatch(/project\.create +ann@example\.org +Research/);
  });

  test("invites a member, who joins by the link, then changes their role and removes them", async () => {
    const invited = await laptop.run("member", "invite", "ben@example.org", "--role", "viewer");
    expect(invited).toMatchObject({ code: 0, notes: expect.stringContaining("ben@example.org") });
    expect((await laptop.run("member", "invitations")).out).toMatch(/ben@example\.org +viewer/);
    const { pathname } = new URL(invited.out.trim());
    const ben = new FakeBrowser(server.url);
    await ben.open(pathname);
    expect((await ben.submit(pathname, { name: "Ben", password: PASSWORD })).status).toBe(200);
    expect((await laptop.run("member", "list")).out).toMatch(/ben@example\.org +viewer/);
    expect((await laptop.run("member", "set-role", "ben@example.org", "admin")).out).toMatch(/ben@example\.org +admin/);
    expect((await laptop.run("member", "remove", "ben@example.org")).code).toBe(0);
    expect((await laptop.run("member", "list")).out).not.toContain("ben@");
    expect(await laptop.run("member", "leave")).toMatchObject({
      code: 1,
      notes: expect.stringContaining("last_owner"),
    });
  });

  test("revokes an invitation", async () => {
    const { invitation, url } = z
      .object({ invitation: z.object({ id: z.string() }), url: z.string() })
      .parse(JSON.parse((await laptop.run("member", "invite", "cleo@example.org", "--json")).out));
    expect((await laptop.run("member", "revoke-invitation", invitation.id)).code).toBe(0);
    expect((await new FakeBrowser(server.url).open(new URL(url).pathname)).status).toBe(404);
    expect((await laptop.run("member", "invitations")).out).toBe("no unused invitations\n");
  });

  test("creates, rotates, disables and deletes a key", async () => {
    const made = await laptop.run("key", "create", "ci", "--expires", "30d", "--requests-per-minute", "60");
    expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/^flk_\S+\n$/) });
    const [, id = ""] = /\((key_\w+)\)/.exec(made.notes) ?? [];
    expect((await laptop.run("key", "list")).out).toMatch(new RegExp(`${id} +ci .*60 requests/min`));
    const rotated = await laptop.run("key", "rotate", id, "--overlap", "1h");
    expect(rotated.out).toMatch(/^flk_\S+\n$/);
    expect(rotated.out).not.toBe(made.out);
    expect((await laptop.run("key", "update", id, "--disable")).out).toContain("disabled");
    expect((await laptop.run("key", "delete", id)).code).toBe(0);
    expect((await laptop.run("key", "get", id)).notes).toContain("not_found");
  });

  test("renames the project and deletes it by name", async () => {
    const { projects } = z
      .object({ projects: z.array(z.object({ id: z.string(), name: z.string() })) })
      .parse(JSON.parse((await laptop.run("project", "list", "--json")).out));
    const id = projects.find(({ name }) => name === "Research")?.id ?? "";
    expect((await laptop.run("project", "rename", id, 'R & "D"')).out).toBe(`${id} R & "D"\n`);
    expect(await laptop.run("project", "delete", id)).toMatchObject({ code: 2 });
    expect(await laptop.run("project", "delete", id, "--confirm", "Research")).toMatchObject({ code: 1 });
    expect(await laptop.run("project", "delete", id, "--confirm", 'R & "D"')).toMatchObject({ code: 0 });
    expect((await laptop.run("member", "list")).notes).toContain("No project is set");
    await waitFor(
      "the project to be gone",
      30_000,
      async () => !(await laptop.run("project", "list")).out.includes(id),
    );
  });

  test("has a rejected access token renewed, and parallel commands never send the same refresh token", async () => {
    const before = tokens();
    laptop.credentials = laptop.credentials.replace(before.accessToken, "spoilt");
    const results = await Promise.all([laptop.run("whoami"), laptop.run("whoami"), laptop.run("whoami")]);
    expect(results.map(({ code }) => code)).toEqual([0, 0, 0]);
    expect(tokens().refreshToken).not.toBe(before.refreshToken);
  });

  test("signs out: the token is rejected immediately, and commands say how to sign in again", async () => {
    const { accessToken } = tokens();
    expect(await isGood(accessToken)).toBe(true);
    expect(await laptop.run("logout")).toMatchObject({ code: 0, out: `signed out of ${server.url}\n` });
    expect(await isGood(accessToken)).toBe(false);
    expect(await laptop.run("whoami")).toMatchObject({
      code: 1,
      notes: expect.stringContaining("Run `fairlead login"),
    });
  });

  test("signs in with a browser on the same machine", async () => {
    const login = laptop.start("login", "--web", "--base-url", server.url);
    const page = new URL(await login.noticed(/this machine:\n\n {2}(\S+)/));
    await ann.open(page.pathname + page.search);
    const consent = await ann.submit("/consent", { decision: "allow" });
    const [, back = ""] = /href="(http:\/\/127\.0\.0\.1:\d+\/callback[^"]+)"/.exec(consent.text) ?? [];
    expect(await (await fetch(back.replaceAll("&amp;", "&"))).text()).toContain("You are signed in");
    expect(await login.finished).toMatchObject({ code: 0, out: expect.stringContaining("as ann@example.org") });
  });

  test("is signed out when the login's session is revoked", async () => {
    const { accessToken } = tokens();
    const { sessions } = z
      .object({ sessions: z.array(z.object({ id: z.string(), current: z.boolean() })) })
      .parse(JSON.parse((await laptop.run("session", "list", "--json")).out));
    const own = sessions.find(({ current }) => current)?.id ?? "";
    expect((await laptop.run("session", "revoke", own)).code).toBe(0);
    expect(await isGood(accessToken)).toBe(false);
    expect((await laptop.run("whoami")).notes).toContain("Run `fairlead login`");
  });
});
