import { invitationSchema, memberSchema, type Role } from "@fairlead/protocol/resources";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { STORES } from "../../testing.fixture.ts";
import { type Answer, errorOf, openProjectHost, type ProjectHost } from "../projects/project-host.fixture.ts";

const invited = z.strictObject({ invitation: z.strictObject(invitationSchema.shape), url: z.string() });
const SEED = 20_261_128;
const TEN_KB = 10_240;

/** What is no address. */
const NO_ADDRESSES = [
  "",
  "ben",
  "@example.org",
  "ben@",
  "a b@example.org",
  "ben@example.org\0",
  "ben@example.org, eve@example.org",
  `"><script>"@example.org`,
  "ben@exa mple.org",
  "bén@example.org",
  "ben@münchen.example",
  "\ud800@example.org",
  "Ben <ben@example.org>",
  `${"x".repeat(TEN_KB)}@example.org`,
];
/** Ids that name nothing, as a path carries them. */
const NO_IDS = [
  "usr_none",
  "'; DROP TABLE member; --",
  "<b>",
  "項目",
  "🦊",
  "..%2f..%2fmembers",
  "%25",
  "x".repeat(256),
];

describe.each(STORES)("members over HTTP, on $name", (kind) => {
  let host: ProjectHost;
  let projectId: string;

  beforeAll(async () => {
    host = await openProjectHost(kind);
  });
  afterAll(() => host.close());
  beforeEach(async () => {
    projectId = await host.createProject();
  });

  const call: ProjectHost["call"] = (...args) => host.call(...args);
  const idOf = (person: string): string => host.idOf(person);
  const enter = (person: string, role: Role): Promise<void> => host.enter(projectId, person, role);
  const project = (rest = ""): string => `/v1/projects/${projectId}${rest}`;
  const memberPath = (person: string): string => project(`/members/${idOf(person)}`);
  const invite = (email: string, role: Role = "member", as = "ann"): Promise<Answer> =>
    call("POST", project("/members"), { as, body: { email, role } });
  async function inviteOk(email: string, role?: Role): Promise<z.infer<typeof invited>> {
    const answer = await invite(email, role);
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    return invited.parse(answer.body);
  }

  const invitations = async (): Promise<string[]> => {
    const { body } = await call("GET", project("/invitations"));
    return z
      .object({ invitations: z.array(invitationSchema) })
      .parse(body)
      .invitations.map(({ email }) => email);
  };

  describe("members", () => {
    test("are listed page by page, with exactly the fields of the interface", async () => {
      await enter("ben", "viewer");
      const list = async (query: string): Promise<{ members: unknown[]; nextPageToken: string }> => {
        const { body } = await call("GET", project(`/members${query}`), { as: "ben" });
        return z
          .strictObject({ members: z.array(z.strictObject(memberSchema.shape)), nextPageToken: z.string() })
          .parse(body);
      };
      const all = await list("");
      expect(all.members).toEqual([
        { projectId, userId: idOf("ann"), email: "ann@example.org", role: "owner", createdAt: expect.any(String) },
        {
          projectId,
          userId: idOf("ben"),
          email: "ben@example.org",
          role: "viewer",
          createdAt: "1970-01-01T00:00:00.000Z",
        },
      ]);
      const first = await list("?pageSize=1");
      const second = await list(`?pageSize=1&pageToken=${first.nextPageToken}`);
      expect([...first.members, ...second.members]).toEqual(all.members);
      expect(second.nextPageToken).toBe("");
    });

    test("get another role, returned at the top level; the body may repeat the path parameters", async () => {
      await enter("ben", "viewer");
      const body = { projectId, userId: idOf("ben"), role: "admin" };
      const changed = await call("PATCH", memberPath("ben"), { body });
      expect(changed.status).toBe(200);
      expect(changed.body).toEqual({ ...body, email: "ben@example.org", createdAt: "1970-01-01T00:00:00.000Z" });
      expect((await call("PATCH", memberPath("ben"), { body: { role: "member" } })).body).toMatchObject({
        role: "member",
      });
    });

    test.each([
      ["projectId", { projectId: "prj_other", role: "admin" }],
      ["userId", { userId: "usr_other", role: "admin" }],
      ["role", {}],
      ["role", { role: "root" }],
      ["role", { role: ["owner"] }],
      ["roles", { role: "admin", roles: "owner" }],
    ])("are not changed by a body with a wrong %s", async (param, body) => {
      await enter("ben", "viewer");
      const answer = await call("PATCH", memberPath("ben"), { body });
      expect(answer.status).toBe(400);
      expect(errorOf(answer)).toMatchObject({ code: "invalid_request", param });
    });

    test("are removed and leave with an empty response, and are gone in the next call", async () => {
      await enter("ben", "member");
      await enter("cid", "viewer");
      const removed = await call("DELETE", memberPath("ben"));
      expect([removed.status, removed.body]).toEqual([200, {}]);
      expect((await call("GET", project(), { as: "ben" })).status).toBe(404);
      expect((await call("DELETE", memberPath("ben"))).status).toBe(404);
      expect((await call("DELETE", memberPath("cid"), { as: "cid" })).body).toEqual({});
      expect((await call("GET", project("/members"), { as: "cid" })).status).toBe(404);
    });

    test("keep their last owner: the response is 409 and says not to retry", async () => {
      for (const answer of [
        await call("DELETE", memberPath("ann")),
        await call("PATCH", memberPath("ann"), { body: { role: "admin" } }),
      ]) {
        expect(answer.status).toBe(409);
        expect(errorOf(answer).code).toBe("last_owner");
        expect(answer.headers.get("x-should-retry")).toBe("false");
      }
    });

    test("keep one of two owners who demote each other at the same time", async () => {
      await enter("ben", "owner");
      const answers = await Promise.all([
        call("PATCH", memberPath("ben"), { body: { role: "admin" } }),
        call("PATCH", memberPath("ann"), { as: "ben", body: { role: "admin" } }),
      ]);
      expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 403]);
      const { body } = await call("GET", project("/members"));
      const { members } = z.object({ members: z.array(memberSchema) }).parse(body);
      expect(members.map(({ role }) => role).toSorted()).toEqual(["admin", "owner"]);
    });
  });

  describe("invitations", () => {
    test("return their link once, and store addresses in lower case", async () => {
      const { invitation, url } = await inviteOk("  New.Person+x@Example.ORG ", "admin");
      expect(invitation).toMatchObject({ projectId, email: "new.person+x@example.org", role: "admin" });
      expect(Date.parse(invitation.expiresAt) - Date.parse(invitation.createdAt)).toBe(7 * 24 * 3_600_000);
      expect(url).toMatch(new RegExp(`^${host.platformUrl}/invitations/fli_[\\w-]{43}$`));
      expect(await invitations()).toEqual([invitation.email]);
      expect(JSON.stringify((await call("GET", project("/invitations"))).body)).not.toContain("fli_");
    });

    test("are created once for an Idempotency-Key: a repeat is rejected, since the link is not stored", async () => {
      const send = (body: unknown): Promise<Answer> =>
        call("POST", project("/members"), { body, headers: { "idempotency-key": projectId } });
      const first = await send({ email: "new@example.org", role: "member" });
      const { invitation } = invited.parse(first.body);
      const again = await send({ email: "new@example.org", role: "member" });
      expect([again.status, errorOf(again).code]).toEqual([409, "already_exists"]);
      expect(errorOf(again).message).toContain(invitation.id);
      expect(errorOf(await send({ email: "other@example.org", role: "member" })).code).toBe("idempotency_mismatch");
      expect(await invitations()).toEqual(["new@example.org"]);
    });

    test("replace the previous one for the same address, and are revoked by ID", async () => {
      const { invitation: before } = await inviteOk("new@example.org");
      const { invitation } = await inviteOk("NEW@example.org", "viewer");
      expect(await invitations()).toEqual(["new@example.org"]);
      expect((await call("DELETE", project(`/invitations/${before.id}`))).status).toBe(404);
      expect((await call("DELETE", project(`/invitations/${invitation.id}`))).body).toEqual({});
      expect(await invitations()).toEqual([]);
      expect((await call("DELETE", project(`/invitations/${invitation.id}`))).status).toBe(404);
    });

    test("are rejected for existing members, without permission, and above the caller's own permissions", async () => {
      await enter("ben", "admin");
      await enter("cid", "member");
      const refused = async (answer: Promise<Answer>): Promise<unknown> => {
        const { status, ...rest } = await answer;
        return [status, errorOf({ status, ...rest }).code];
      };
      expect(await refused(invite("BEN@example.org"))).toEqual([409, "already_exists"]);
      expect(await refused(invite("new@example.org", "owner", "ben"))).toEqual([403, "permission_denied"]);
      expect(await refused(invite("new@example.org", "viewer", "cid"))).toEqual([403, "permission_denied"]);
      expect(await refused(invite("new@example.org", "viewer", "eve"))).toEqual([404, "not_found"]);
      const { invitation } = await inviteOk("new@example.org", "owner");
      const takeBack = call("DELETE", project(`/invitations/${invitation.id}`), { as: "ben" });
      expect(await refused(takeBack)).toEqual([403, "permission_denied"]);
      expect(await invitations()).toEqual(["new@example.org"]);
    });
  });

  describe("hostile text", () => {
    test.each(NO_ADDRESSES)("%j cannot be invited as an address", async (email) => {
      const answer = await invite(email);
      expect([answer.status, errorOf(answer).param]).toEqual([400, "email"]);
      expect(await invitations()).toEqual([]);
    });

    test.each(["o'brien@example.org", "a_b-c+d@example.org", `${"x".repeat(64)}@example.org`, "--@example.org"])(
      "%j can be invited as an address",
      async (email) => {
        expect((await inviteOk(email)).invitation.email).toBe(email);
        expect(await invitations()).toEqual([email]);
      },
    );

    test.each(NO_IDS)("%j as an ID finds nobody", async (id) => {
      const part = encodeURIComponent(id);
      for (const [method, path] of [
        ["PATCH", project(`/members/${part}`)],
        ["DELETE", project(`/members/${part}`)],
        ["DELETE", project(`/invitations/${part}`)],
        ["PATCH", `/v1/projects/${part}/members/${idOf("ann")}`],
        ["GET", `/v1/projects/${part}/members`],
        ["GET", `/v1/projects/${part}`],
        ["DELETE", `/v1/projects/${part}?confirmName=x`],
      ] as const) {
        const answer = await call(method, path, method === "PATCH" ? { body: { role: "admin" } } : {});
        expect([answer.status, errorOf(answer).code], `${method} ${path}`).toEqual([404, "not_found"]);
      }
    });

    test.each(["a\0b", "\n", "x".repeat(257), "x".repeat(TEN_KB)])("%j as an ID is invalid", async (id) => {
      const part = encodeURIComponent(id);
      for (const path of [`/members/${part}`, `/invitations/${part}`]) {
        const answer = await call("DELETE", project(path));
        expect([400, 404, 414]).toContain(answer.status);
      }
    });

    test("as an address is kept exactly or rejected by field name, and as an ID finds nobody", async () => {
      const characters = ["\0", "\ud800", "'", '"', "<", "%", "\u202e", "a", "🦊", " ", "@", "."];
      const unit = fc.oneof(fc.string({ unit: "binary", minLength: 1, maxLength: 1 }), fc.constantFrom(...characters));
      await fc.assert(
        fc.asyncProperty(fc.string({ unit }), async (text) => {
          const email = `${text}@example.org`;
          const answer = await invite(email);
          if (answer.status === 200)
            expect(invited.parse(answer.body).invitation.email).toBe(email.trim().toLowerCase());
          else expect([answer.status, errorOf(answer).param]).toEqual([400, "email"]);
          const path = project(`/members/${encodeURIComponent(text.toWellFormed())}x`);
          for (const [method, body] of [
            ["PATCH", { role: "admin" }],
            ["DELETE", undefined],
          ] as const) {
            expect([400, 404]).toContain((await call(method, path, { body })).status);
          }
        }),
        { numRuns: 150, seed: SEED },
      );
    });
  });
});
