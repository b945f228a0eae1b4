import { expect, test } from "vitest";
import { outwardHeaders } from "./relay-headers.ts";

test.each([
  ["/login", "", "/v1/nodes/nod_1/gateway/login"],
  ["/login", "/fairlead", "/fairlead/v1/nodes/nod_1/gateway/login"],
  ["//other.example/x", "/fairlead", "//other.example/x"],
  ["https://other.example/x", "/fairlead", "https://other.example/x"],
  ["next", "/fairlead", "next"],
])("a workload's redirect to %s, with the platform at path %j, becomes %s", (location, publicPath, expected) => {
  const headers = outwardHeaders({ location }, { nodeId: "nod_1", requestId: "req_1", publicPath });
  expect(headers["location"]).toBe(expected);
});
