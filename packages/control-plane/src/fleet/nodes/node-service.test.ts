import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { STORES } from "../../testing.fixture.ts";
import { type NodeFixture, nodeFixture, OTHER_PROJECT, OWNER, PROJECT, STRANGER, VIEWER } from "./node.fixture.ts";
import type { CreateNode } from "./node-service.ts";
import { toNewNode } from "./node-view.ts";

describe.each(STORES)("on $name", ({ open }) => {
  let fixture: NodeFixture;
  beforeEach(async () => {
    fixture = await nodeFixture(open);
  });
  afterEach(() => fixture.close());

  const INPUT: CreateNode = {
    projectId: PROJECT,
    planId: "byo",
    name: "Box",
    directSecrets: false,
    engineConfig: null,
  };

  it("counts the nodes of each status in all projects for the operator", async () => {
    await fixture.nodes.create(OWNER, INPUT);
    await fixture.nodes.create(STRANGER, { ...INPUT, projectId: OTHER_PROJECT });
    await fixture.createEnrolled("Other");
    expect(await fixture.stores.nodes.countByStatus()).toMatchObject({ provisioning: 2, starting: 1, active: 0 });
  });

  describe("creating a node", () => {
    it("returns a provisioning node without any credential in it", async () => {
      const node = toNewNode(await fixture.nodes.create(OWNER, INPUT));
      expect(node).toMatchObject({
        projectId: PROJECT,
        userId: OWNER.userId,
        status: "provisioning",
        identifier: "box",
        publicIp: "",
        directSecrets: false,
        connectors: [],
        engineConfig: {},
      });
      expect(Object.keys(node).filter((field) => /token|key|secret$/i.test(field))).toEqual([]);
    });

    it("gives nodes with the same name different identifiers, even when they are created concurrently", async () => {
      const nodes = await Promise.all([1, 2, 3].map(() => fixture.nodes.create(OWNER, INPUT)));
      expect(nodes.map((node) => node.identifier).toSorted()).toEqual(["box", "box-2", "box-3"]);
      const elsewhere = await fixture.nodes.create(STRANGER, { ...INPUT, projectId: OTHER_PROJECT });
      expect(elsewhere.identifier).toBe("box");
    });

    it("is refused for a viewer, a stranger, an unknown plan, and a provider token without a rented machine", async () => {
      const refusals = [
        fixture.nodes.create(VIEWER, INPUT),
        fixture.nodes.create(STRANGER, INPUT),
        fixture.nodes.create(OWNER, { ...INPUT, planId: "nowhere:big" }),
        fixture.nodes.create(OWNER, { ...INPUT, providerToken: "x" }),
      ];
      const outcomes = await Promise.allSettled(refusals);
      expect(outcomes).toMatchObject([
        { reason: { code: "permission_denied" } },
        { reason: { code: "not_found" } },
        { reason: { code: "invalid_request", param: "planId" } },
        { reason: { code: "invalid_request", param: "providerToken" } },
      ]);
    });
  });

  describe("reading nodes", () => {
    it("shows a node to its project's members and to itself; others get not found", async () => {
      const { id } = await fixture.create("Box");
      const itself = { kind: "node", nodeId: id, projectId: PROJECT } as const;
      const other = { kind: "node", nodeId: "nod_other", projectId: PROJECT } as const;
      expect((await fixture.nodes.get(VIEWER, id)).id).toBe(id);
      expect((await fixture.nodes.get(itself as never, id)).id).toBe(id);
      const [stranger, otherNode, unknown] = await Promise.allSettled([
        fixture.nodes.get(STRANGER, id),
        fixture.nodes.get(other as never, id),
        fixture.nodes.get(OWNER, "nod_x"),
      ]);
      for (const outcome of [stranger, otherNode]) {
        expect(outcome).toMatchObject({
          reason: { code: "not_found", message: (unknown as PromiseRejectedResult).reason.message },
        });
      }
    });

    it("lists only the project's nodes, in pages, oldest first", async () => {
      await fixture.nodes.create(STRANGER, { ...INPUT, projectId: OTHER_PROJECT });
      const ids = [];
      for (const name of ["A", "B", "C"]) ids.push((await fixture.create(name)).id);
      const first = await fixture.nodes.list(VIEWER, PROJECT, { limit: 2, after: null });
      const rest = await fixture.nodes.list(VIEWER, PROJECT, { limit: 2, after: first.at(-1)?.id ?? null });
      expect([...first, ...rest].map((node) => node.id)).toEqual(ids);
      await expect(fixture.nodes.list(STRANGER, PROJECT, { limit: 2, after: null })).rejects.toMatchObject({
        code: "not_found",
      });
    });
  });
});
