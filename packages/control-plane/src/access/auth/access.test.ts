import { ROLES, type Role } from "@fairlead/protocol/resources";
import { describe, expect, test } from "vitest";
import { asUser } from "../../testing.fixture.ts";
import { mayDo, type Operation, ProjectAccess, ROLES_BY_OPERATION } from "./access.ts";

const operations = Object.keys(ROLES_BY_OPERATION) as Operation[];
const ann = asUser("usr_ann");

function accessAs(role: Role | null, deleting = false): ProjectAccess {
  const membership = role && { role, deleting };
  return new ProjectAccess({
    membershipOf: async () => membership,
    holdMembership: async () => membership,
    rolesOf: async () => (role === null ? [] : [{ projectId: "prj_1", role }]),
  });
}

describe("access", () => {
  test("an owner may do everything, and each role everything that a weaker role may do", () => {
    for (const operation of operations) {
      const allowed = ROLES.map((role) => mayDo(role, operation));
      expect(allowed[0]).toBe(true);
      expect(allowed).toEqual(allowed.toSorted((a, b) => Number(b) - Number(a)));
    }
  });

  test("a viewer can only read", () => {
    const may = operations.filter((operation) => mayDo("viewer", operation));
    expect(may.filter((operation) => !/\.(read|list)$/.test(operation))).toEqual([]);
  });

  test("a stranger gets not_found for a project, whatever the operation", async () => {
    for (const operation of operations) {
      await expect(accessAs(null).require(ann, "prj_1", operation)).rejects.toMatchObject({ code: "not_found" });
    }
  });

  test("a member is told which role the operation requires", async () => {
    await expect(accessAs("viewer").require(ann, "prj_1", "key.create")).rejects.toMatchObject({
      code: "permission_denied",
      message: "Your role in this project is viewer. This requires owner or admin or member.",
    });
    await expect(accessAs("member").require(ann, "prj_1", "key.create")).resolves.toBe("member");
  });

  test("projectsOf returns only the projects in which the caller may perform the operation", async () => {
    expect(await accessAs("viewer").projectsOf(ann, "node.read")).toEqual(["prj_1"]);
    expect(await accessAs("viewer").projectsOf(ann, "node.create")).toEqual([]);
  });
});
