import { nodeSchema } from "@fairlead/protocol/resources";
import { expect, test } from "vitest";
import { NodeKey } from "./node.fixture.ts";
import { NEW_NODE, type NodeRecord } from "./node.ts";
import { toNode } from "./node-view.ts";

test("a response has exactly the fields of its schema, without keys and internal columns", () => {
  const { signingKey, sealing } = new NodeKey();
  const record: NodeRecord = {
    ...NEW_NODE,
    id: "nod_1",
    projectId: "prj_1",
    userId: "usr_1",
    name: "Box",
    identifier: "box",
    planId: "byo",
    status: "starting",
    statusMessage: "",
    statusSince: 0,
    directSecrets: false,
    engineConfig: null,
    signingKey,
    sealingKey: sealing.publicKey,
    createdAt: 0,
  };
  const node = toNode(record, { desiredDaemonVersion: null, desired: null, report: null });
  expect(nodeSchema.strict().parse(node)).toEqual(node);
});
