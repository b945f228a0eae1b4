import { ROLES, type Role } from "@fairlead/protocol/resources";
import { describe, expect, test } from "vitest";
import { higherRole, mayGive, memberRefusalOf, rolesBeyond, toInvitation, toMember } from "./member.ts";

const FAR_FROM_LAST = 3;

/** `yes`, or why not: whoever is in the row does it to whoever is in the column. `leave`: they are the same person. */
const REMOVALS: Readonly<Record<Role, Readonly<Record<Role, boolean>>>> = {
  owner: { owner: true, admin: true, member: true, viewer: true },
  admin: { owner: false, admin: true, member: true, viewer: true },
  member: { owner: false, admin: false, member: false, viewer: false },
  viewer: { owner: false, admin: false, member: false, viewer: false },
};

/** Every change of a role, by whom, from what to what. */
const PROMOTIONS = ROLES.flatMap((by) =>
  ROLES.flatMap((from) =>
    ROLES.map((to) => {
      const managed = by === "owner" || (by === "admin" && from !== "owner" && to !== "owner");
      return { by, from, to, allowed: managed };
    }),
  ),
);

describe("who may change whom", () => {
  test.each(PROMOTIONS)("$by makes $from $to: $allowed", ({ by, from, to, allowed }) => {
    const expected = allowed ? null : "permission_denied";
    for (const self of by === from ? [false, true] : [false]) {
      expect(memberRefusalOf({ by, from, to, self, owners: FAR_FROM_LAST })).toBe(expected);
    }
  });

  test.each(ROLES.flatMap((by) => ROLES.map((from) => ({ by, from, allowed: REMOVALS[by][from] }))))(
    "$by removes $from: $allowed",
    ({ by, from, allowed }) => {
      const expected = allowed ? null : "permission_denied";
      expect(memberRefusalOf({ by, from, to: null, self: false, owners: FAR_FROM_LAST })).toBe(expected);
    },
  );

  test.each(ROLES)("%s may leave on their own", (role) => {
    expect(memberRefusalOf({ by: role, from: role, to: null, self: true, owners: 2 })).toBeNull();
  });

  test("the last owner cannot leave, be removed, or get another role; others can", () => {
    for (const to of [null, "admin", "member", "viewer"] as const) {
      for (const self of [true, false]) {
        expect(memberRefusalOf({ by: "owner", from: "owner", to, self, owners: 1 })).toBe("last_owner");
        expect(memberRefusalOf({ by: "owner", from: "owner", to, self, owners: 2 })).toBeNull();
      }
      expect(memberRefusalOf({ by: "owner", from: "admin", to, self: false, owners: 1 })).toBeNull();
    }
    expect(memberRefusalOf({ by: "owner", from: "owner", to: "owner", self: true, owners: 1 })).toBeNull();
  });

  test("an admin who acts on the last owner is told about their own permissions, not about owners", () => {
    expect(memberRefusalOf({ by: "admin", from: "owner", to: null, self: false, owners: 1 })).toBe("permission_denied");
  });
});

describe("roles", () => {
  test("cannot be granted with more permissions than the caller's own", () => {
    for (const role of ROLES) {
      for (const given of ROLES) {
        if (higherRole(role, given) === given && given !== role) expect(mayGive(role, given)).toBe(false);
      }
      expect(rolesBeyond(role)).toEqual(ROLES.filter((given) => !mayGive(role, given)));
    }
    expect(ROLES.map((role) => rolesBeyond(role).length)).toEqual([0, 1, 4, 4]);
  });

  test("are compared by permissions, in either order", () => {
    for (const [i, high] of ROLES.entries()) {
      for (const low of ROLES.slice(i)) {
        expect(higherRole(high, low)).toBe(high);
        expect(higherRole(low, high)).toBe(high);
      }
    }
  });
});

test("members and invitations have exactly their fields in responses", () => {
  const member = { projectId: "prj_1", userId: "usr_1", email: "a@example.org", role: "admin", createdAt: 0 } as const;
  expect(toMember(member)).toEqual({ ...member, createdAt: "1970-01-01T00:00:00.000Z" });
  const { userId: _, ...rest } = member;
  expect(toInvitation({ ...rest, id: "otl_1", expiresAt: 1 })).toEqual({
    ...rest,
    id: "otl_1",
    createdAt: "1970-01-01T00:00:00.000Z",
    expiresAt: "1970-01-01T00:00:00.001Z",
  });
});
