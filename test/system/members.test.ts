import { memberSchema, type Role } from "@fairlead/protocol/resources";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { FakeBrowser } from "../../packages/control-plane/src/people/pages/testing/fake-browser.ts";
import { StartedServer } from "../support/started-server.ts";

const PASSWORD = "correct horse battery";
const project = z.object({ project: z.object({ id: z.string() }) });
const invited = z.object({ url: z.string() });
const createdKey = z.object({ key: z.object({ keyValue: z.string() }) });

/** A team on a real server: people come by real invitations on the real pages, and go. */
describe("a team of three", () => {
  let server: StartedServer;
  let projectId: string;
  const tokens = new Map<string, string>();
  const ids = new Map<string, string>();

  beforeAll(async () => {
    server = await StartedServer.start();
    const { url } = await server.asOperator((admin) => admin.setUpLink());
    await enter("ann", url);
    projectId = project.parse(await ok("POST", "/v1/projects", { as: "ann", body: { name: "Team" } })).project.id;
  });
  afterAll(() => server.remove());

  /** Makes an account on the page of a link, and a token for scripts. */
  async function enter(name: string, url: string): Promise<void> {
    const browser = new FakeBrowser(server.url);
    const { pathname } = new URL(url);
    const email = `${name}@example.org`;
    await browser.open(pathname);
    await browser.submit(pathname, { email, name, password: PASSWORD });
    expect(browser.shown.path).toMatch(/^\/account\?/);
    tokens.set(name, (await server.asOperator((admin) => admin.createToken({ email }))).token);
    ids.set(name, z.object({ id: z.string() }).parse(await ok("GET", "/v1/me", { as: name })).id);
  }

  interface Call {
    readonly as: string;
    readonly body?: unknown;
  }

  function send(method: string, path: string, { as, body }: Call): Promise<Response> {
    const headers = { authorization: `Bearer ${tokens.get(as)}`, "content-type": "application/json" };
    const init = body === undefined ? { headers: { authorization: headers.authorization } } : { headers };
    return fetch(`${server.url}${path}`, {
      method,
      ...init,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  async function ok(method: string, path: string, call: Call): Promise<unknown> {
    const response = await send(method, path, call);
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  const path = (rest = ""): string => `/v1/projects/${projectId}${rest}`;
  const memberPath = (name: string): string => path(`/members/${ids.get(name)}`);
  const invite = async (name: string, role: Role): Promise<string> => {
    const body = { email: `${name}@example.org`, role };
    return invited.parse(await ok("POST", path("/members"), { as: "ann", body })).url;
  };
  const roles = async (as: string): Promise<Record<string, Role>> => {
    const { members } = z.object({ members: z.array(memberSchema) }).parse(await ok("GET", path("/members"), { as }));
    return Object.fromEntries(members.map(({ email, role }) => [email.split("@")[0], role]));
  };
  const tryKey = async (key: string): Promise<number> =>
    (await fetch(`${server.modelsUrl}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;

  test("forms by invitations", async () => {
    await enter("ben", await invite("ben", "member"));
    await enter("cid", await invite("cid", "viewer"));
    expect(await roles("cid")).toEqual({ ann: "owner", ben: "member", cid: "viewer" });
    expect(await ok("GET", path("/invitations"), { as: "ann" })).toMatchObject({ invitations: [] });
  });

  test("promotes a member to owner, whom lower roles cannot change", async () => {
    expect((await send("PATCH", memberPath("ben"), { as: "cid", body: { role: "owner" } })).status).toBe(403);
    await ok("PATCH", memberPath("ben"), { as: "ann", body: { role: "owner" } });
    await ok("PATCH", memberPath("cid"), { as: "ben", body: { role: "admin" } });
    expect((await send("PATCH", memberPath("ben"), { as: "cid", body: { role: "viewer" } })).status).toBe(403);
    expect((await send("DELETE", memberPath("ann"), { as: "cid" })).status).toBe(403);
    expect(await roles("cid")).toEqual({ ann: "owner", ben: "owner", cid: "admin" });
  });

  test("keeps one owner when two owners demote each other at the same time, repeatedly", async () => {
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all([
        send("PATCH", memberPath("ben"), { as: "ann", body: { role: "viewer" } }),
        send("PATCH", memberPath("ann"), { as: "ben", body: { role: "viewer" } }),
      ]);
      expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 403]);
      const now = await roles("cid");
      const owner = now["ann"] === "owner" ? "ann" : "ben";
      const other = owner === "ann" ? "ben" : "ann";
      expect(now).toEqual({ [owner]: "owner", [other]: "viewer", cid: "admin" });
      expect((await send("DELETE", memberPath(owner), { as: owner })).status).toBe(409);
      await ok("PATCH", memberPath(other), { as: owner, body: { role: "owner" } });
    }
  });

  test("removes a member: their key is rejected immediately, and their token no longer finds the project", async () => {
    const makeKey = async (as: string): Promise<string> =>
      createdKey.parse(await ok("POST", path("/keys"), { as, body: { name: as } })).key.keyValue;
    const bens = await makeKey("ben");
    const cids = await makeKey("cid");
    expect([await tryKey(bens), await tryKey(cids)]).toEqual([200, 200]);
    const dan = { email: "dan@example.org", role: "admin" };
    const link = invited.parse(await ok("POST", path("/members"), { as: "cid", body: dan })).url;

    await ok("DELETE", memberPath("cid"), { as: "ben" });

    expect([await tryKey(bens), await tryKey(cids)]).toEqual([200, 401]);
    for (const [method, at] of [
      ["GET", path()],
      ["GET", path("/members")],
      ["DELETE", memberPath("cid")],
    ] as const) {
      expect((await send(method, at, { as: "cid" })).status).toBe(404);
    }
    expect(await ok("GET", "/v1/projects", { as: "cid" })).toMatchObject({ projects: [] });
    const page = await new FakeBrowser(server.url).open(new URL(link).pathname);
    expect(page.status).toBe(404);
  });

  test("has every one of its actions in the audit log", async () => {
    const { auditEvents } = z
      .object({ auditEvents: z.array(z.object({ action: z.string() })) })
      .parse(await ok("GET", path("/audit?pageSize=200"), { as: "ben" }));
    const actions = auditEvents.map(({ action }) => action).toReversed();
    expect(actions.slice(0, 5)).toEqual([
      "project.create",
      "member.invite",
      "member.join",
      "member.invite",
      "member.join",
    ]);
    expect(actions.slice(-4)).toEqual(["member.invite", "key.disable", "invitation.revoke", "member.remove"]);
  });
});
