import { expect, test } from "vitest";
import { printedRoute, RequestTally } from "./request-tally.ts";

test.each([
  ["/v1/nodes::count-active", "/v1/nodes:count-active"],
  ["/v1/nodes/:id(^[^:]+)", "/v1/nodes/{id}"],
  ["/v1/nodes/:id(^[^:]+)/ready", "/v1/nodes/{id}/ready"],
  ["/v1/nodes/:node_id/secrets/:name", "/v1/nodes/{node_id}/secrets/{name}"],
  [undefined, "unknown"],
])("the route %s is printed as %s", (pattern, printed) => {
  expect(printedRoute(pattern)).toBe(printed);
});

test("requests are counted by method, route and status, and timed by method and route", () => {
  const tally = new RequestTally();
  tally.add({ method: "GET", route: "/a", status: 200 }, 0.5);
  tally.add({ method: "GET", route: "/a", status: 200 }, 1.5);
  tally.add({ method: "GET", route: "/a", status: 404 }, 1);
  expect([...tally.counts()].map(({ status, count }) => [status, count])).toEqual([
    [200, 2],
    [404, 1],
  ]);
  expect([...tally.times()].map(({ route, seconds }) => [route, seconds.count, seconds.sum])).toEqual([["/a", 3, 3]]);
});
