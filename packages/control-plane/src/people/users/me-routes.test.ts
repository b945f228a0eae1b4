import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { asUser, openMemoryStore } from "../../testing.fixture.ts";
import { BROWSER, openSignInHost, type SignInHost } from "../sign-in/sign-in.fixture.ts";

const sessionsAnswer = z.object({
  sessions: z.array(z.object({ id: z.string(), userAgent: z.string(), current: z.boolean() })),
});

describe("/v1/me", () => {
  let host: SignInHost;
  let userId: string;
  let token: string;
  beforeEach(async () => {
    host = await openSignInHost(openMemoryStore);
    userId = (await host.addUser("ann@example.org")).id;
    ({ token } = await host.users.openSession({
      email: "ann@example.org",
      ttlSeconds: 600,
      actor: { kind: "system", name: "local_admin" },
    }));
  });
  afterEach(() => host.close());

  const call = (path: string, init: RequestInit = {}, bearer = token): Promise<Response> => {
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${bearer}`);
    return fetch(host.url + path, { ...init, headers });
  };
  const patch = (body: unknown): Promise<Response> =>
    call("/v1/me", {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });

  test("returns the caller, and all of their projects with their role in each, however many", async () => {
    const caller = asUser(userId);
    const names = Array.from({ length: 201 }, (_, n) => `Project ${n}`);
    const made = [];
    for (const name of names) made.push(await host.projects.create(caller, { name }));
    const bob = await host.addUser("bob@example.org");
    await host.projects.create(asUser(bob.id), { name: "Bob's" });
    const body = await (await call("/v1/me")).json();
    expect(body).toEqual({
      id: userId,
      email: "ann@example.org",
      name: "Ann",
      platformAdmin: false,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      projects: expect.any(Array),
    });
    const { projects } = z
      .object({ projects: z.array(z.object({ id: z.string(), name: z.string(), role: z.string() })) })
      .parse(body);
    expect(projects.toSorted((a, b) => a.id.localeCompare(b.id))).toEqual(
      made.map(({ id, name }) => ({ id, name, role: "owner" })).toSorted((a, b) => a.id.localeCompare(b.id)),
    );
  });

  test("changes the name, whatever it contains, and nothing else", async () => {
    const name = `Ann "O'Neil" <b>; drop table "user"; -- 🦊`;
    expect(await (await patch({ name: ` ${name} ` })).json()).toMatchObject({ id: userId, name });
    expect((await host.users.get(userId)).name).toBe(name);
    expect(await host.audited()).toContain("user.rename");
    for (const body of [
      {},
      { name: "" },
      { name: "x".repeat(10_000) },
      { name: "a\u0000b" },
      { name, email: "x@y.z" },
      [],
    ]) {
      expect((await patch(body)).status, JSON.stringify(body).slice(0, 40)).toBe(400);
    }
    expect((await patch({ name, platformAdmin: true })).status).toBe(400);
    expect((await host.users.get(userId)).platformAdmin).toBe(false);
  });

  test("lists the caller's sessions, and marks the one that is calling", async () => {
    const { session } = await host.signIn.openSession(userId, BROWSER, "password");
    const { sessions } = sessionsAnswer.parse(await (await call("/v1/me/sessions")).json());
    expect(sessions).toHaveLength(2);
    expect(sessions.find(({ id }) => id === session.id)).toMatchObject({
      userAgent: BROWSER.userAgent,
      current: false,
    });
    expect(sessions.filter(({ current }) => current)).toHaveLength(1);
  });

  test("ends a session of the caller, and nobody else's", async () => {
    const { session } = await host.signIn.openSession(userId, BROWSER, "password");
    const bob = await host.addUser("bob@example.org");
    const bobs = await host.signIn.openSession(bob.id, BROWSER, "password");
    const end = async (id: string): Promise<number> =>
      (await call(`/v1/me/sessions/${id}`, { method: "DELETE" })).status;
    expect(await end(bobs.session.id)).toBe(404);
    expect(await end(session.id)).toBe(200);
    expect(await end(session.id)).toBe(404);
    expect(await end("' or 1=1 --")).toBe(404);
    expect(await host.sessions.find(bobs.session.id)).not.toBeNull();
    expect(await host.audited()).toContain("session.revoke");
  });

  test("ends the token of the calling session with that session", async () => {
    const { sessions } = sessionsAnswer.parse(await (await call("/v1/me/sessions")).json());
    const ended: string[] = [];
    host.sessions.listen((ids) => ended.push(...ids));
    expect((await call(`/v1/me/sessions/${sessions[0]?.id ?? ""}`, { method: "DELETE" })).status).toBe(200);
    expect(ended).toEqual([sessions[0]?.id]);
    expect((await call("/v1/me")).status).toBe(401);
  });

  test("is only for users with a session", async () => {
    for (const path of ["/v1/me", "/v1/me/sessions"]) {
      expect((await fetch(host.url + path)).status).toBe(401);
      expect((await call(path, {}, "flk_x_y")).status).toBe(401);
      const cookies = { cookie: "fairlead_session=x" };
      expect((await fetch(host.url + path, { headers: cookies })).status).toBe(401);
    }
  });
});
