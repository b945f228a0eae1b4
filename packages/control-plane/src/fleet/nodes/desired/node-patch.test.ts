import { DomainError } from "@fairlead/protocol/errors";
import type { Node } from "@fairlead/protocol/resources";
import { EXAMPLE_NODE } from "@fairlead/protocol/testing/example-node";
import { describe, expect, it } from "vitest";
import { type NodePatch, patchNode, type WritableNode } from "./node-patch.ts";

const NODE: Node = {
  ...EXAMPLE_NODE,
  name: "Box",
  engineConfig: { image: "a:1", env: { A: "1", B: "2" }, health: { path: "/h", intervalSeconds: 2 } },
  conditions: [{ type: "clock", status: "ok", reason: "", message: "", since: "2026-01-01T00:00:00.000Z" }],
};

function patched(node: NodePatch["node"], updateMask: string | null = null): WritableNode {
  return patchNode(NODE, { node, updateMask });
}

function refusedParam(node: NodePatch["node"], updateMask: string | null = null): string | null {
  try {
    patched(node, updateMask);
  } catch (error) {
    if (error instanceof DomainError && error.code === "invalid_request") return error.param;
    throw error;
  }
  throw new Error("was not refused");
}

describe("patching a node without a mask", () => {
  it("changes the writable fields that are present and keeps the others", () => {
    expect(patched({ name: "New" })).toEqual({ name: "New", engineConfig: NODE.engineConfig });
    expect(patched({ engineConfig: { image: "b:2" } })).toEqual({ name: "Box", engineConfig: { image: "b:2" } });
  });

  it("accepts get → change → patch: unchanged read-only fields and unknown fields are allowed", () => {
    expect(patched({ ...NODE, name: "New", fromANewerServer: 1 }).name).toBe("New");
  });

  it("accepts conditions that have changed since the get, and does not change them", () => {
    expect(patched({ ...NODE, name: "New", conditions: [] })).toMatchObject({ name: "New" });
    expect(refusedParam({ conditions: [] }, "conditions")).toBe("updateMask");
  });

  it("rejects a read-only field with another value, and names it", () => {
    expect(refusedParam({ status: "failed" })).toBe("node.status");
    expect(refusedParam({ directSecrets: true })).toBe("node.directSecrets");
  });

  it("names the field of an invalid value", () => {
    expect(refusedParam({ name: 3 })).toBe("node.name");
    expect(refusedParam({ engineConfig: { image: "a", port: 0 } })).toBe("node.engineConfig.port");
    expect(refusedParam({ engineConfig: { image: "a", imagee: "b" } })).toBe("node.engineConfig");
  });
});

describe("patching a node with a mask", () => {
  it("changes only what the mask names, including nested paths", () => {
    const node = { name: "ignored", engineConfig: { image: "b:2", port: 99, health: { path: "/other" } } };
    expect(patched(node, "engineConfig.image,engineConfig.health.path")).toEqual({
      name: "Box",
      engineConfig: { image: "b:2", env: { A: "1", B: "2" }, health: { path: "/other", intervalSeconds: 2 } },
    });
  });

  it("replaces an entire map", () => {
    expect(patched({ engineConfig: { env: { C: "3" } } }, "engineConfig.env").engineConfig?.env).toEqual({ C: "3" });
  });

  it("resets fields that the mask names and the body omits", () => {
    expect(patched({}, "engineConfig.env").engineConfig).toEqual({
      image: "a:1",
      health: { path: "/h", intervalSeconds: 2 },
    });
    expect(patched({}, "engineConfig").engineConfig).toBeNull();
    expect(refusedParam({}, "name")).toBe("node.name");
  });

  it.each(["status", "id", "engineConfig.env.A", "engine_config", "nope", "name.x", "", "__proto__", "constructor"])(
    "rejects the path %j, and names the mask",
    (path) => expect(refusedParam({ name: "x" }, path)).toBe("updateMask"),
  );
});
