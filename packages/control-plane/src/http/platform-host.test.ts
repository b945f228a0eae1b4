import { once } from "node:events";
import { connect } from "node:net";
import { RequestTally } from "@fairlead/hosting/requests/request-tally";
import { DomainError } from "@fairlead/protocol/errors";
import { countingIds } from "@fairlead/protocol/testing/test-clock";
import { isId } from "@fairlead/protocol/values/ids";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { Authenticate } from "../access/auth/authenticate.ts";
import { isPrincipalOf, type Principal } from "../access/auth/principal.ts";
import { createLog } from "../installation/process/log.ts";
import { asUser } from "../testing.fixture.ts";
import { listen, urlOf } from "./listening/listen.ts";
import { createPlatformHost, type PlatformApp } from "./platform-host.ts";
import { principalOf, requirePrincipal } from "./requests/require-principal.ts";

interface ErrorAnswerBody {
  readonly error: {
    readonly code: string;
    readonly param: string | null;
    readonly message: string;
    readonly requestId: string;
  };
}

const SECRET = "eyJ-session-secret";
const logged: string[] = [];
let ready: () => Promise<void> = async () => {};

const principals: Readonly<Record<string, Principal>> = { [`Bearer ${SECRET}`]: asUser("usr_1") };
const authenticate: Authenticate = async (header, kinds) => {
  const principal = principals[header ?? ""];
  if (principal && isPrincipalOf(principal, kinds)) return principal;
  throw new DomainError("invalid_credential", "Send a token.");
};

function addRoutes(app: PlatformApp): void {
  const onRequest = requirePrincipal("user");
  const body = z.strictObject({ node: z.strictObject({ name: z.string(), tags: z.array(z.string()).optional() }) });
  app.post("/v1/things", { onRequest, schema: { body } }, async (request) => ({
    userId: principalOf(request, "user").userId,
    name: request.body.node.name,
  }));
  app.get("/v1/things/:id", { schema: { params: z.object({ id: z.string() }) } }, async ({ params }) => params);
  app.delete("/v1/things/:id", async () => ({}));
  app.get("/v1/broken", async () => {
    throw new Error(`cannot read ${SECRET}`);
  });
  app.get("/v1/locked", async () => {
    throw Object.assign(new Error("database is locked"), { code: "SQLITE_BUSY" });
  });
  app.get("/v1/unguarded", async (request) => principalOf(request, "user"));
}

describe("the platform host", () => {
  let app: PlatformApp;
  let url: string;

  beforeAll(async () => {
    const log = createLog({ level: "trace", destination: { write: (line) => void logged.push(line) } });
    app = createPlatformHost({
      ids: countingIds(),
      log,
      authenticate,
      routes: addRoutes,
      health: { ready: () => ready(), publicJwks: () => ({ keys: [] }) },
      requests: new RequestTally(),
      document: { publicUrl: "http://127.0.0.1:8080", inferencePaths: {} },
    });
    await app.ready();
    await listen(app.server, { host: "127.0.0.1", port: 0, setting: "port" });
    const address = app.server.address();
    url = urlOf("127.0.0.1", typeof address === "object" && address ? address.port : 0);
  });
  afterAll(() => app.close());

  const json = { "content-type": "application/json" };
  const signedIn = { ...json, authorization: `Bearer ${SECRET}` };

  async function call(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`${url}${path}`, init);
  }

  async function refusal(path: string, init: RequestInit = {}): Promise<[number, string, string | null]> {
    const response = await call(path, init);
    const answer = (await response.json()) as ErrorAnswerBody;
    const names = Object.keys(answer.error).filter((name) => name !== "errors");
    expect(names.toSorted()).toEqual(["code", "message", "param", "requestId", "source", "type"]);
    expect(answer.error.requestId).toBe(response.headers.get("x-request-id"));
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    return [response.status, answer.error.code, answer.error.param];
  }

  test("responses have a request ID from the server, whatever ID the request has", async () => {
    const response = await call("/v1/things/one", { headers: { "x-request-id": "forged", "request-id": "forged" } });
    expect(await response.json()).toEqual({ id: "one" });
    expect(isId("request", response.headers.get("x-request-id") ?? "")).toBe(true);
    expect(response.headers.get("cache-control")).toBe("no-store");
  });

  test("an unknown path returns 404 in the error format", async () => {
    expect(await refusal("/v1/nothing")).toEqual([404, "not_found", null]);
    expect(await refusal("/", { method: "POST", body: "x" })).toEqual([404, "not_found", null]);
  });

  test("a known path with another method returns 405 and names the allowed methods", async () => {
    expect(await refusal("/v1/things/one", { method: "PUT" })).toEqual([405, "method_not_allowed", null]);
    const response = await call("/v1/things/one", { method: "POST", headers: json, body: "{}" });
    expect(response.headers.get("allow")).toBe("DELETE, GET, HEAD");
  });

  test.each(["{", "{'a':1}", "\u0000", '{"a":1}}'])("the body %j is rejected as malformed JSON", async (body) => {
    const init = { method: "POST", headers: signedIn, body };
    expect(await refusal("/v1/things", init)).toEqual([400, "malformed_json", null]);
  });

  test("a body that would change prototypes is rejected", async () => {
    for (const body of ['{"__proto__":{"x":1}}', '{"constructor":{"prototype":{"x":1}}}']) {
      expect((await refusal("/v1/things", { method: "POST", headers: signedIn, body }))[0]).toBe(400);
    }
  });

  test("a missing or empty body is reported as such", async () => {
    for (const body of ["", null]) {
      const init = { method: "POST", headers: signedIn, body };
      expect(await refusal("/v1/things", init)).toEqual([400, "invalid_request", "body"]);
    }
  });

  test("an empty body with a media type is accepted where no body is needed", async () => {
    const response = await call("/v1/things/one", { method: "DELETE", headers: json, body: "" });
    expect(response.status).toBe(200);
  });

  test.each([
    ['{"node":{}}', "node.name", "`node.name`: is missing."],
    ['{"node":{"name":5}}', "node.name", "`node.name`: invalid input: expected string, received number."],
    [
      '{"node":{"name":"x","tags":["a",1]}}',
      "node.tags[1]",
      "`node.tags[1]`: invalid input: expected string, received number.",
    ],
    ['{"node":{"nmae":"x"}}', "node.nmae", "Unknown field `node.nmae`; `node.name`: is missing."],
    ['{"node":{"name":"x"},"limit":1}', "limit", "Unknown field `limit`."],
    ["[]", "body", "`body`: invalid input: expected object, received array."],
  ])("the body %s is rejected, naming %s", async (body, param, message) => {
    const response = await call("/v1/things", { method: "POST", headers: signedIn, body });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: "invalid_request", param, message } });
  });

  test("another media type returns 415", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "nonsense"]) {
      const init = { method: "POST", headers: { ...signedIn, "content-type": type }, body: "{}" };
      expect(await refusal("/v1/things", init)).toEqual([415, "unsupported_media_type", null]);
    }
  });

  test("a body over the limit returns 413", async () => {
    const init = { method: "POST", headers: signedIn, body: JSON.stringify("x".repeat(1_100_000)) };
    expect(await refusal("/v1/things", init)).toEqual([413, "request_too_large", null]);
  });

  test("a caller without a credential is rejected before the body is parsed, and told the scheme to use", async () => {
    const response = await call("/v1/things", { method: "POST", headers: json, body: "{" });
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
    expect(response.headers.get("x-should-retry")).toBe("false");
  });

  test("cookies are not accepted as a credential", async () => {
    const headers = { ...json, cookie: `session=${SECRET}; authorization=Bearer ${SECRET}` };
    expect((await refusal("/v1/things", { method: "POST", headers, body: "{}" }))[0]).toBe(401);
  });

  test("a route gets the identity of a caller with a credential", async () => {
    const body = '{"node":{"name":"x"}}';
    const response = await call("/v1/things", { method: "POST", headers: signedIn, body });
    expect(await response.json()).toEqual({ userId: "usr_1", name: "x" });
  });

  test.each([
    ["/v1/things/%ZZ", 400],
    ["/v1/things/%", 400],
    ["/v1/things/%C3%28", 400],
    ["/v1/things/a%00b", 400],
    ["/v1/things/one?x=%00", 400],
    [`/v1/things/${"x".repeat(1000)}`, 404],
    ["//evil", 404],
  ])("the path %s returns %d, never 500", async (path, status) => {
    expect((await refusal(path))[0]).toBe(status);
  });

  test("an internal error is reported briefly, can be retried, and is logged in full", async () => {
    logged.length = 0;
    const response = await call("/v1/broken");
    expect(response.status).toBe(500);
    expect(response.headers.get("x-should-retry")).toBeNull();
    const text = await response.text();
    expect(text).toContain("internal");
    expect(text).not.toContain("cannot read");
    expect(logged.join("")).toContain("cannot read");
    expect(logged.join("")).toContain(response.headers.get("x-request-id"));
  });

  test("an unavailable store returns 503 with the time to wait", async () => {
    const response = await call("/v1/locked");
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("1");
    expect(await response.json()).toMatchObject({ error: { code: "unavailable" } });
  });

  test("a route that reads a principal without a guard returns 500", async () => {
    expect((await call("/v1/unguarded", { headers: signedIn })).status).toBe(500);
  });

  test("headers over the limit return 431, and invalid HTTP returns 400, both in the error format", async () => {
    const long = await raw(`GET / HTTP/1.1\r\nhost: x\r\nx-long: ${"x".repeat(70_000)}\r\n\r\n`);
    expect(long).toMatch(/^HTTP\/1\.1 431 /);
    expect(long).toContain('"code":"headers_too_large"');
    const nonsense = await raw("HELLO\r\n\r\n");
    expect(nonsense).toMatch(/^HTTP\/1\.1 400 /);
    expect(nonsense).toContain('"code":"invalid_request"');
    expect(nonsense).toMatch(/x-request-id: req_/);
  });

  test("an offer to upgrade to HTTP/2 is ignored, as RFC 9110 allows", async () => {
    const answer = await raw(
      "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, HTTP2-Settings, close\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n",
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });

  test("the health check always succeeds, and readiness depends on the store", async () => {
    expect((await call("/healthz")).status).toBe(200);
    expect((await call("/readyz")).status).toBe(200);
    ready = () => Promise.reject(new Error("no store"));
    expect(await refusal("/readyz")).toEqual([503, "unavailable", null]);
    expect((await call("/healthz")).status).toBe(200);
    ready = async () => {};
  });

  test("the public keys can be cached for a short time", async () => {
    const response = await call("/.well-known/jwks.json");
    expect(await response.json()).toEqual({ keys: [] });
    expect(response.headers.get("cache-control")).toBe("public, max-age=60");
  });

  test("no credential, header, body or query appears in the log", async () => {
    logged.length = 0;
    const body = `{"node":{"name":"${SECRET}","tags":[1]}}`;
    await call(`/v1/things?token=${SECRET}`, { method: "POST", headers: signedIn, body });
    await call(`/v1/things/${SECRET}`, { headers: signedIn });
    await call(`/v1/${SECRET}`, { headers: signedIn });
    expect(logged.length).toBeGreaterThanOrEqual(3);
    expect(logged.join("")).not.toContain(SECRET);
  });

  async function raw(text: string): Promise<string> {
    const { port } = new URL(url);
    const socket = connect({ host: "127.0.0.1", port: Number(port) });
    let answer = "";
    socket.on("data", (data: Buffer) => {
      answer += data.toString();
    });
    // The rest of an answered request may meet a closed connection.
    socket.on("error", () => {});
    socket.write(text);
    await once(socket, "close");
    return answer;
  }
});
