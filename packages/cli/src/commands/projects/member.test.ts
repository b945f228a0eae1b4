import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { run } from "../../testing/run.ts";
import { type Answer, type StubHost, startStubHost } from "../../testing/stub-host.ts";

const createdAt = "2026-03-02T09:30:00.000Z";
const ann = { projectId: "prj_1", userId: "usr_1", email: "ann@example.org", role: "owner", createdAt };
const ben = { ...ann, userId: "usr_2", email: "ben@example.org", role: "member" };
const invitation = {
  id: "otl_1",
  projectId: "prj_1",
  email: "cleo@example.org",
  role: "admin",
  createdAt,
  expiresAt: "2026-03-09T09:30:00.000Z",
};
const url = "https://ai.example.org/invitations/fli_x";
const MEMBERS = "GET /v1/projects/prj_1/members";
const listed = { [MEMBERS]: { body: { members: [ann, ben], nextPageToken: "" } } };

let configDir: string;
let host: StubHost | undefined;
beforeEach(() => {
  configDir = mkdtempSync(join(tmpdir(), "fairlead-member-"));
});
afterEach(() => {
  host?.close();
  rmSync(configDir, { recursive: true });
});

async function call(argv: readonly string[], answers: Record<string, Answer>): ReturnType<typeof run> {
  host?.close();
  host = await startStubHost(answers);
  const env = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
  return run(["member", ...argv], { env, configDir });
}

describe("fairlead member", () => {
  test("list shows the members of the project, with their roles and since when they belong to it", async () => {
    const { out } = await call(["list"], listed);
    expect(out).toMatch(/usr_2 +ben@example\.org +member +2026-03-02T09:30:00.000Z/);
    expect(JSON.parse((await call(["list", "--json"], listed)).out)).toEqual({ members: [ann, ben] });
  });

  test("invite prints only the link to standard output, and says who to send it to", async () => {
    const answers = { "POST /v1/projects/prj_1/members": { body: { invitation, url } } };
    const result = await call(["invite", "cleo@example.org", "--role", "admin"], answers);
    expect(result).toMatchObject({ code: 0, out: `${url}\n`, notes: expect.stringContaining("cleo@example.org") });
    expect(host?.seen[0]).toMatchObject({ body: { email: "cleo@example.org", role: "admin" } });
    expect(host?.seen[0]?.idempotencyKey).toMatch(/^req_/);
  });

  test("set-role finds a member by email address, and repeats the IDs of the path in the body", async () => {
    const path = "/v1/projects/prj_1/members/usr_2";
    const answers = { ...listed, [`PATCH ${path}`]: { body: { ...ben, role: "viewer" } } };
    expect((await call(["set-role", "Ben@example.org", "viewer"], answers)).out).toMatch(/ben@example\.org +viewer/);
    expect(host?.seen.at(-1)?.body).toEqual({ projectId: "prj_1", userId: "usr_2", role: "viewer" });
  });

  test("set-role and invite reject an unknown role as a usage error", async () => {
    expect(await call(["set-role", "usr_2", "king"], {})).toMatchObject({
      code: 2,
      notes: expect.stringContaining("owner, admin, member, viewer"),
    });
    expect((await call(["invite", "cleo@example.org", "--role", "king"], {})).code).toBe(2);
  });

  test("remove accepts an ID without fetching the list, and reports who is not a member", async () => {
    const answers = { ...listed, "DELETE /v1/projects/prj_1/members/usr_2": { body: {} } };
    expect(await call(["remove", "usr_2"], answers)).toMatchObject({ code: 0, out: "removed usr_2\n" });
    expect(host?.seen.length).toBe(1);
    const stranger = await call(["remove", "dora@example.org"], answers);
    expect(stranger).toMatchObject({ code: 1, notes: expect.stringContaining("fairlead member list") });
  });

  test("leave removes the caller, and clears the project set by `project use`", async () => {
    const user = { id: "usr_1", email: "ann@example.org", name: "Ann", platformAdmin: false };
    const project = { id: "prj_1", userId: "usr_1", name: "Research", createdAt, updatedAt: createdAt };
    host = await startStubHost({
      "GET /v1/me": { body: { ...user, projects: [] } },
      "GET /v1/projects/prj_1": { body: project },
      "DELETE /v1/projects/prj_1/members/usr_1": { body: {} },
    });
    const env = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok" };
    await run(["project", "use", "prj_1"], { env, configDir });
    expect(await run(["member", "leave"], { env, configDir })).toMatchObject({ code: 0, out: "left prj_1\n" });
    expect((await run(["member", "list"], { env, configDir })).notes).toContain("No project is set");
  });

  test("remove shows the host's message when the last owner cannot leave", async () => {
    const error = { message: "The last owner cannot leave.", code: "last_owner", requestId: "req_1" };
    const answers = { "DELETE /v1/projects/prj_1/members/usr_1": { status: 409, body: { error } } };
    expect(await call(["remove", "usr_1"], answers)).toMatchObject({
      code: 1,
      notes: "fairlead: The last owner cannot leave. (last_owner, req_1)\n",
    });
  });

  test("invitations lists the unused ones, and revoke-invitation revokes one by ID", async () => {
    const answers = {
      "GET /v1/projects/prj_1/invitations": { body: { invitations: [invitation] } },
      "DELETE /v1/projects/prj_1/invitations/otl_1": { body: {} },
    };
    expect((await call(["invitations"], answers)).out).toMatch(/otl_1 +cleo@example\.org +admin +2026-03-09/);
    expect((await call(["revoke-invitation", "otl_1"], answers)).out).toBe("revoked otl_1\n");
    const none = { "GET /v1/projects/prj_1/invitations": { body: { invitations: [] } } };
    expect((await call(["invitations"], none)).out).toBe("no unused invitations\n");
  });
});
