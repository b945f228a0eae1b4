import { describe, expect, test } from "vitest";
import { relayedPath } from "./relay-path.ts";

describe("the relay path", () => {
  test.each([
    ["/v1/nodes/nod_1/gateway", "/"],
    ["/v1/nodes/nod_1/gateway/", "/"],
    ["/v1/nodes/nod_1/gateway?x=/y", "/?x=/y"],
    ["/v1/nodes/nod_1/gateway//a/../b%2f%zz?q#f", "//a/../b%2f%zz?q#f"],
  ])("%s maps to the workload's %s", (target, path) => {
    expect(relayedPath(target)).toEqual({ nodeId: "nod_1", path });
  });

  test.each([
    "",
    "*",
    "/",
    "/v1/nodes/nod_1",
    "/v1/nodes/nod_1/gatewayx",
    "/v1/nodes//gateway/x",
    "/v1/nodes/gateway/x",
    "/v1/nodes/a/b/gateway/x",
    "/v1/nodes/nod_1/secrets/gateway",
    "/V1/nodes/nod_1/gateway/x",
    "//v1/nodes/nod_1/gateway/x",
    "/x/../v1/nodes/nod_1/gateway/x",
    "http://elsewhere:1/v1/nodes/nod_1/gateway/x",
    "ftp://host/v1/nodes/nod_1/gateway/x",
    "host:443",
  ])("%j is not a relay path", (target) => {
    expect(relayedPath(target)).toBeNull();
  });
});
