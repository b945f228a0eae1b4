import type { Role } from "@fairlead/protocol/resources";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenStore } from "../../testing.fixture.ts";
import { type MemberFixture, memberFixture, PROJECT, PUBLIC_URL } from "./member.fixture.ts";
import { INVITATION_LIFE_MS } from "./member.ts";

const ORIGIN = { requestId: "req_1", address: "192.0.2.1" };

export function memberServiceContract(name: string, open: OpenStore): void {
  describe(`with the member services on ${name},`, () => {
    let fixture: MemberFixture;
    const named = (user: string): { projectId: string; userId: string } => ({
      projectId: PROJECT,
      userId: `usr_${user}`,
    });

    beforeEach(async () => {
      fixture = await memberFixture(open);
    });
    afterEach(() => fixture.close());

    /** @returns the token of the link in the answer. */
    async function invite(by: string, email: string, role: Role = "member"): Promise<string> {
      const caller = { kind: "user", userId: `usr_${by}`, platformAdmin: false } as never;
      const { url } = await fixture.invitations.create(caller, { projectId: PROJECT, email, role });
      expect(url.startsWith(`${PUBLIC_URL}/invitations/fli_`)).toBe(true);
      return url.slice(`${PUBLIC_URL}/invitations/`.length);
    }
    const accept = (user: string, token: string): Promise<{ readonly projectId: string }> =>
      fixture.invitations.acceptInvitation({ userId: `usr_${user}`, email: `usr_${user}@example.org` }, token, ORIGIN);

    test("two owners who demote each other at the same time leave one owner", async () => {
      const ann = await fixture.add("ann", "owner");
      const ben = await fixture.add("ben", "owner");
      const changes = await Promise.allSettled([
        fixture.members.update(ann, { ...named("ben"), role: "member" }),
        fixture.members.update(ben, { ...named("ann"), role: "member" }),
      ]);
      expect(changes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      expect(new Set([await fixture.roleOf("ann"), await fixture.roleOf("ben")])).toEqual(new Set(["member", "owner"]));
    });

    test("two owners who leave or remove each other at the same time leave one owner", async () => {
      const ann = await fixture.add("ann", "owner");
      const ben = await fixture.add("ben", "owner");
      const changes = await Promise.allSettled([
        fixture.members.remove(ann, named("ann")),
        fixture.members.remove(ben, named("ann")),
        fixture.members.remove(ben, named("ben")),
        fixture.members.remove(ann, named("ben")),
      ]);
      expect(changes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      expect(
        [await fixture.roleOf("ann"), await fixture.roleOf("ben")].filter((role) => role === "owner"),
      ).toHaveLength(1);
    });

    test("the last owner is told what to do instead, and nothing changes", async () => {
      const ann = await fixture.add("ann", "owner");
      await fixture.addKey("key_a", "ann");
      await expect(fixture.members.remove(ann, named("ann"))).rejects.toMatchObject({ code: "last_owner" });
      await expect(fixture.members.update(ann, { ...named("ann"), role: "admin" })).rejects.toMatchObject({
        code: "last_owner",
      });
      expect(await fixture.roleOf("ann")).toBe("owner");
      expect(await fixture.enabledKeys()).toEqual(["key_a"]);
      expect(await fixture.audit()).toEqual([]);
    });

    test("removing a member removes their keys and open invitations, and nobody else's", async () => {
      const ann = await fixture.add("ann", "owner");
      await fixture.add("ben", "admin");
      await fixture.addKey("key_a", "ann");
      await fixture.addKey("key_b", "ben");
      const bens = await invite("ben", "usr_cid@example.org");
      const anns = await invite("ann", "usr_dan@example.org");
      await fixture.add("cid");
      await fixture.add("dan");
      await fixture.members.remove(ann, named("ben"));
      expect(await fixture.enabledKeys()).toEqual(["key_a"]);
      expect(fixture.forgotten).toEqual(["key_b"]);
      await expect(accept("cid", bens)).rejects.toMatchObject({ code: "not_found" });
      await expect(accept("dan", anns)).resolves.toEqual({ projectId: PROJECT });
      expect((await fixture.audit()).slice(2)).toEqual([
        "key.disable key_b",
        expect.stringMatching(/^invitation.revoke otl_/),
        "member.remove usr_ben",
        "member.join usr_dan",
      ]);
    });

    test("a member who becomes a viewer loses keys, and an admin who becomes a member loses invitations", async () => {
      const ann = await fixture.add("ann", "owner");
      await fixture.add("ben", "admin");
      await fixture.addKey("key_b", "ben");
      const token = await invite("ben", "usr_cid@example.org");
      await fixture.add("cid");
      await fixture.members.update(ann, { ...named("ben"), role: "member" });
      expect(await fixture.enabledKeys()).toEqual(["key_b"]);
      await expect(accept("cid", token)).rejects.toMatchObject({ code: "not_found" });
      await fixture.members.update(ann, { ...named("ben"), role: "viewer" });
      expect(await fixture.enabledKeys()).toEqual([]);
    });

    test("setting the same role again changes nothing, and is not recorded", async () => {
      const ann = await fixture.add("ann", "owner");
      await fixture.add("ben", "member");
      expect(await fixture.members.update(ann, { ...named("ben"), role: "member" })).toMatchObject({ role: "member" });
      expect(await fixture.audit()).toEqual([]);
    });

    test("strangers get not_found for the project, and members get it for a user who is not a member", async () => {
      const ann = await fixture.add("ann", "owner");
      const cid = await fixture.add("cid");
      await expect(fixture.members.remove(cid, named("ann"))).rejects.toMatchObject({ code: "not_found" });
      await expect(fixture.members.remove(cid, named("cid"))).rejects.toMatchObject({ code: "not_found" });
      await expect(fixture.members.update(ann, { ...named("cid"), role: "viewer" })).rejects.toMatchObject({
        code: "not_found",
      });
    });

    test("an invitation admits only its own user, once, and shows their address masked", async () => {
      await fixture.add("ann", "owner");
      await fixture.add("ben");
      await fixture.add("cid");
      const token = await invite("ann", "usr_ben@example.org", "admin");
      await expect(accept("cid", token)).rejects.toMatchObject({
        code: "permission_denied",
        message: expect.stringContaining("u…@example.org") as string,
      });
      await accept("ben", token);
      expect(await fixture.roleOf("ben")).toBe("admin");
      await expect(accept("ben", token)).rejects.toMatchObject({ code: "not_found" });
    });

    test("simultaneous acceptances create one member", async () => {
      await fixture.add("ann", "owner");
      await fixture.add("ben");
      const token = await invite("ann", "usr_ben@example.org");
      const answers = await Promise.allSettled(Array.from({ length: 5 }, () => accept("ben", token)));
      expect(answers.some(({ status }) => status === "fulfilled")).toBe(true);
      expect(await fixture.roleOf("ben")).toBe("member");
      expect((await fixture.audit()).filter((event) => event.startsWith("member.join"))).toHaveLength(1);
    });

    test("an invitation never lowers a role that was granted in the meantime", async () => {
      await fixture.add("ann", "owner");
      const token = await invite("ann", "usr_ben@example.org", "viewer");
      await fixture.add("ben", "admin");
      await accept("ben", token);
      expect(await fixture.roleOf("ben")).toBe("admin");
    });

    test("an invitation expires, is replaced by the next for the same address, and can be revoked", async () => {
      const ann = await fixture.add("ann", "owner");
      await fixture.add("ben");
      const first = await invite("ann", "usr_ben@example.org");
      const second = await invite("ann", "usr_ben@example.org");
      await expect(accept("ben", first)).rejects.toMatchObject({ code: "not_found" });
      const open = await fixture.invitations.list(ann, PROJECT, { after: null, limit: 10 });
      expect(open).toHaveLength(1);
      await fixture.invitations.revoke(ann, { projectId: PROJECT, id: open[0]?.id ?? "" });
      await expect(accept("ben", second)).rejects.toMatchObject({ code: "not_found" });
      const third = await invite("ann", "usr_ben@example.org");
      fixture.clock.advance(INVITATION_LIFE_MS);
      await expect(accept("ben", third)).rejects.toMatchObject({ code: "not_found" });
    });

    test("members are not invited again, and admins do not invite owners", async () => {
      const ann = await fixture.add("ann", "owner");
      const ben = await fixture.add("ben", "admin");
      const input = { projectId: PROJECT, email: "usr_ben@example.org", role: "member" } as const;
      await expect(fixture.invitations.create(ann, input)).rejects.toMatchObject({
        code: "already_exists",
        param: "email",
      });
      const owner = { ...input, email: "usr_cid@example.org", role: "owner" } as const;
      await expect(fixture.invitations.create(ben, owner)).rejects.toMatchObject({ code: "permission_denied" });
    });

    test("a caller who loses permission during a change does not complete it", async () => {
      const ann = await fixture.add("ann", "owner");
      const ben = await fixture.add("ben", "admin");
      await fixture.add("cid", "viewer");
      const [, change] = await Promise.allSettled([
        fixture.members.update(ann, { ...named("ben"), role: "viewer" }),
        fixture.members.update(ben, { ...named("cid"), role: "admin" }),
      ]);
      const promoted = (await fixture.roleOf("cid")) === "admin";
      expect(change.status === "fulfilled").toBe(promoted);
    });
  });
}
