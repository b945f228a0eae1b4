import { DomainError, type ErrorCode } from "@fairlead/protocol/errors";
import { countingIds } from "@fairlead/protocol/testing/test-clock";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { asUser } from "../../testing.fixture.ts";
import { createHttpApp, type HttpApp } from "../http-app.ts";
import { RateLimit } from "./rate-limit.ts";
import { limitCalls, limitCallsOfUser, limitFailures, limitFailuresOfNode, limitMisuse } from "./rate-limit-guards.ts";

const LIMIT = 3;
const limit = (): RateLimit => new RateLimit({ what: "tries", limit: LIMIT, seconds: 60 });

let app: HttpApp;
let userId: string;

beforeEach(() => {
  userId = "usr_a";
  app = createHttpApp({
    ids: countingIds(),
    log: pino({ level: "silent" }),
    routes: (routes) => {
      routes.decorateRequest("principal", null);
      routes.get("/calls", { onRequest: limitCalls(limit()) }, async () => ({}));
      routes.get<{ Querystring: { code?: ErrorCode } }>(
        "/failures",
        { onRequest: limitFailures(limit()) },
        async ({ query }) => {
          if (query.code) throw new DomainError(query.code, "It failed.");
          return {};
        },
      );
      routes.get<{ Querystring: { code?: ErrorCode } }>(
        "/nodes/:id",
        { onRequest: limitFailuresOfNode(limit()) },
        async ({ query }) => {
          if (query.code) throw new DomainError(query.code, "It failed.");
          return {};
        },
      );
      routes.get<{ Querystring: { status: string } }>(
        "/form",
        { onRequest: limitMisuse(limit()) },
        async (request, reply) => reply.code(Number(request.query.status)).send({}),
      );
      const knowUser = async (request: { principal: unknown }): Promise<void> => {
        request.principal = asUser(userId);
      };
      routes.get("/user", { onRequest: [knowUser, limitCallsOfUser(limit())] }, async () => ({}));
    },
  });
});
afterEach(() => app.close());

async function statuses(path: string, count: number, remoteAddress = "192.0.2.1"): Promise<number[]> {
  const found: number[] = [];
  for (let n = 0; n < count; n++) found.push((await app.inject({ url: path, remoteAddress })).statusCode);
  return found;
}

test("calls are counted by the client's address, or by its network for IPv6", async () => {
  expect(await statuses("/calls", 5)).toEqual([200, 200, 200, 429, 429]);
  expect(await statuses("/calls", 1, "192.0.2.2")).toEqual([200]);
  expect(await statuses("/calls", 4, "2001:db8::1")).toEqual([200, 200, 200, 429]);
  expect(await statuses("/calls", 1, "2001:db8::2")).toEqual([429]);
  expect(await statuses("/calls", 1, "2001:db8:0:1::1")).toEqual([200]);
});

test("failures of one node do not lock out other nodes at the same address", async () => {
  expect(await statuses("/nodes/nod_a?code=invalid_credential", 5)).toEqual([401, 401, 401, 429, 429]);
  expect(await statuses("/nodes/nod_b", 1)).toEqual([200]);
  expect(await statuses("/nodes/nod_a", 1)).toEqual([429]);
});

test("where failures are counted, calls that succeed or fail because of the server are not", async () => {
  expect(await statuses("/failures", 10)).toEqual(Array(10).fill(200));
  expect(await statuses("/failures?code=unavailable", 10)).toEqual(Array(10).fill(503));
  expect(await statuses("/failures?code=invalid_credential", 5)).toEqual([401, 401, 401, 429, 429]);
  expect(await statuses("/failures", 1)).toEqual([429]);
});

test("forms count when they cannot be read, and not when a person has to correct them", async () => {
  const form = async (status: number): Promise<number> => (await app.inject(`/form?status=${status}`)).statusCode;
  for (let n = 0; n < 2 * LIMIT; n++)
    for (const status of [200, 422, 429, 503]) expect(await form(status)).toBe(status);
  for (const status of [400, 403, 413]) expect(await form(status)).toBe(status);
  expect(await form(200)).toBe(429);
});

test("a rejected call gets a regular error response that says when to retry", async () => {
  await statuses("/calls", LIMIT);
  const answer = await app.inject({ url: "/calls", remoteAddress: "192.0.2.1" });
  expect(answer.json()).toMatchObject({ error: { type: "rate_limit_error", code: "rate_limit_exceeded" } });
  expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
  expect(answer.headers["x-ratelimit-limit"]).toBe(String(LIMIT));
});

test("a user's calls are counted across all addresses", async () => {
  expect(await statuses("/user", LIMIT, "192.0.2.1")).toEqual([200, 200, 200]);
  expect(await statuses("/user", 1, "192.0.2.2")).toEqual([429]);
  userId = "usr_b";
  expect(await statuses("/user", 1, "192.0.2.1")).toEqual([200]);
});
