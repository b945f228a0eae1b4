import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { WorkloadConnect } from "@fairlead/protocol/workload-connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { answerOf, headOf, relayRequest } from "../support/relay-call.ts";
import { type Person, RelayStage, type StagedNode } from "../support/relay-stage.ts";
import { readBytes } from "../support/scripted-engine.ts";
import { waitFor } from "../support/wait-for.ts";

const WAIT_MS = 60_000;
const MB = 1024 * 1024;
const SSE = { "content-type": "text/event-stream" };

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

let stage: RelayStage;
let owner: Person;
let node: StagedNode;
let way: WorkloadConnect;

beforeAll(async () => {
  stage = await RelayStage.start();
  owner = await stage.addPerson();
  node = await stage.addNode(owner, await stage.addProject(owner));
  way = await stage.connect(owner.token, node.id);
});
afterAll(() => stage.stop());
beforeEach(() => {
  node.engine.requests.length = 0;
});

const until = (what: string, ask: () => boolean): Promise<unknown> =>
  waitFor(what, WAIT_MS, () => Promise.resolve(ask()));

/** What the engine got as this test's one request. */
const seen = (): { readonly url: string | undefined; readonly headers: Record<string, unknown> } => {
  const [request] = node.engine.requests;
  return { url: request?.url, headers: request?.headers ?? {} };
};

describe("a request through the relay", () => {
  test("reaches the engine with its method, path, headers and body, and returns the response", async () => {
    let body = "";
    node.engine.script = async (request, response) => {
      body = (await readBytes(request)).toString();
      response.writeHead(201, { "x-engine": "é ü", "content-type": "text/plain" }).end("done");
    };
    const headers = { "content-type": "text/x", "content-length": "5", "accept-encoding": "br", "x-mine": "é" };
    const request = relayRequest(way, { path: "/v1/x?y=%2F&z", method: "PROPFIND", headers });
    // Node writes a head together with a text as UTF-8.
    request.write(Buffer.from("hello"));
    const answer = await answerOf(request);
    expect(answer).toMatchObject({ status: 201, text: "done", headers: { "x-engine": "é ü" } });
    expect(body).toBe("hello");
    expect(node.engine.requests[0]?.method).toBe("PROPFIND");
    expect(seen()).toMatchObject({
      url: "/v1/x?y=%2F&z",
      headers: { "content-type": "text/x", "accept-encoding": "br", "x-mine": "é" },
    });
  });

  test.each([
    ["", "/"],
    ["?a=b", "/?a=b"],
    ["/..", "/.."],
    ["/../../../healthz", "/../../../healthz"],
    ["/%2e%2e/%2E%2e%2fmetrics", "/%2e%2e/%2E%2e%2fmetrics"],
    ["//example.org/x", "//example.org/x"],
    ["/a//b/./c;d=1", "/a//b/./c;d=1"],
    ["/%zz%00%ff", "/%zz%00%ff"],
    ["/\\..\\x", "/\\..\\x"],
    ["/v1/nodes/other/gateway/x", "/v1/nodes/other/gateway/x"],
    ["/http://example.org/", "/http://example.org/"],
  ])("reaches the engine with the path %j as sent, and nothing else of the platform", async (path, expected) => {
    node.engine.script = (_request, response) => response.end("engine");
    expect(await answerOf(relayRequest(way, { path }))).toMatchObject({ status: 200, text: "engine" });
    expect(seen().url).toBe(expected);
  });

  test("is refused if its target is an absolute URL", async () => {
    const target = `http://127.0.0.1:1${new URL(way.gatewayUrl).pathname}/x`;
    expect((await answerOf(relayRequest(way, { target }))).status).toBe(400);
    expect(node.engine.requests).toEqual([]);
  });

  test.each(["gatewayx", "gateway%2Fx", "gatewa%79/x", "gateway;/x"])("is the platform's own at …/%s", async (name) => {
    const target = `/v1/nodes/${node.id}/${name}`;
    expect((await answerOf(relayRequest(way, { target }))).status).toBe(404);
    expect(node.engine.requests).toEqual([]);
  });

  test.each(["GET", "DELETE", "OPTIONS"])("keeps the body of a %s separate from the next request", async (method) => {
    const smuggled = "POST /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
    let body = "";
    node.engine.script = async (request, response) => {
      body = (await readBytes(request)).toString();
      response.end("ok");
    };
    const request = relayRequest(way, { method, headers: { "transfer-encoding": "chunked" } });
    request.write(smuggled);
    expect((await answerOf(request)).text).toBe("ok");
    expect(body).toBe(smuggled);
    expect(node.engine.requests).toHaveLength(1);
  });

  test.each(["HEAD", "OPTIONS", "TRACE", "REPORT"])("can use the method %s", async (method) => {
    node.engine.script = (_request, response) => response.writeHead(204, { "x-engine": "1" }).end();
    const answer = await answerOf(relayRequest(way, { method }));
    expect([answer.status, answer.headers["x-engine"]]).toEqual([204, "1"]);
    expect(node.engine.requests[0]?.method).toBe(method);
  });
});

describe("headers", () => {
  test("of the caller lose credentials, cookies, forged platform headers and hop-by-hop headers", async () => {
    node.engine.script = (_request, response) => response.end();
    const headers = {
      cookie: "session=1",
      forwarded: "for=1.2.3.4",
      "x-real-ip": "1.2.3.4",
      "x-forwarded-for": "1.2.3.4",
      "x-forwarded-host": "evil",
      "fairlead-token": "forged",
      "fairlead-workload": "other",
      "x-fairlead-upstream": "forged",
      connection: "close, x-private",
      "x-private": "1",
      te: "trailers",
      expect: "100-continue",
      "content-length": "0",
      accept: "text/html",
    };
    await answerOf(relayRequest(way, { headers, method: "POST" }));
    expect(Object.keys(seen().headers).toSorted()).toEqual(["accept", "connection", "content-length", "host"]);
  });

  test("of the engine cannot act on the platform's origin, and its pages are sandboxed", async () => {
    const headers = {
      "set-cookie": ["a=1", "b=2"],
      "access-control-allow-origin": "*",
      "access-control-allow-credentials": "true",
      "service-worker-allowed": "/",
      "clear-site-data": '"*"',
      "strict-transport-security": "max-age=1",
      "www-authenticate": "Basic",
      "content-security-policy": "default-src *",
      "fairlead-fault": "no_running_engine",
      "x-request-id": "engine's",
      connection: "close, x-private",
      "x-private": "1",
      etag: '"1"',
    };
    node.engine.script = (_request, response) => response.writeHead(401, headers).end("<script>");
    const answer = await answerOf(relayRequest(way));
    expect([answer.status, answer.text, answer.headers["etag"]]).toEqual([401, "<script>", '"1"']);
    const gone = Object.keys(headers).filter((name) => !["content-security-policy", "etag"].includes(name));
    const left = gone.filter((name) => !["x-request-id", "connection"].includes(name) && name in answer.headers);
    expect(left).toEqual([]);
    expect(answer.headers).toMatchObject({
      "content-security-policy": "default-src *, sandbox",
      "x-content-type-options": "nosniff",
      "x-request-id": expect.stringMatching(/^req_/),
    });
  });

  test.each([
    ["/login?next=%2F", true],
    ["//elsewhere.example", false],
    ["https://elsewhere.example/x", false],
    ["relative", false],
  ])("redirect to %s as the engine intended", async (location, moved) => {
    node.engine.script = (_request, response) => response.writeHead(302, { location }).end();
    const answer = await answerOf(relayRequest(way));
    expect(answer.headers.location).toBe(moved ? new URL(way.gatewayUrl).pathname + location : location);
  });
});

describe("streams", () => {
  test("deliver events as they are sent, with the headers before the first event", async () => {
    let send: (event: string) => void = () => undefined;
    node.engine.script = (_request, response) => {
      response.writeHead(200, SSE).flushHeaders();
      send = (event) => (event === "" ? response.end() : response.write(`data: ${event}\n\n`));
    };
    const answer = await headOf(relayRequest(way).end());
    expect(answer.headers).toMatchObject(SSE);
    const events = answer.setEncoding("utf8")[Symbol.asyncIterator]();
    for (const event of ["one", "two", "three"]) {
      send(event);
      expect((await events.next()).value).toBe(`data: ${event}\n\n`);
    }
    send("");
    expect((await events.next()).done).toBe(true);
  });

  test("carry bodies of 48 MB in both directions at the same time, byte for byte", async () => {
    const piece = randomBytes(MB);
    const [sent, received] = [createHash("sha256"), createHash("sha256")];
    node.engine.script = (request, response) => request.pipe(response);
    const request = relayRequest(way, { method: "POST", headers: { "transfer-encoding": "chunked" } });
    const answering = headOf(request).then(async (answer) => {
      for await (const chunk of answer) received.update(chunk as Buffer);
    });
    for (let left = 48; left > 0; left--) {
      sent.update(piece);
      if (!request.write(piece)) await once(request, "drain");
    }
    request.end();
    await answering;
    expect(received.digest("hex")).toBe(sent.digest("hex"));
  });

  test("deliver a response that the engine sends before it has read the body", async () => {
    node.engine.script = (_request, response) => response.writeHead(413).end("too large");
    const request = relayRequest(way, { method: "POST", headers: { "content-length": String(64 * MB) } });
    request.write(Buffer.alloc(MB));
    const answer = await headOf(request);
    expect([answer.statusCode, await text(answer)]).toEqual([413, "too large"]);
    request.destroy();
  });

  test("stop the engine when the caller leaves before the response, during it, or during the request body", async () => {
    const closed: string[] = [];
    node.engine.script = (request, response) => {
      response.on("close", () => closed.push(request.url ?? ""));
      if (request.url === "/begun") response.writeHead(200).write("x");
      if (request.url === "/body") request.resume();
    };
    const silent = relayRequest(way, { path: "/silent" }).end();
    await until("the engine to be asked", () => node.engine.requests.length === 1);
    silent.destroy();
    await until("its end", () => closed.includes("/silent"));
    const begun = relayRequest(way, { path: "/begun" }).end();
    await headOf(begun);
    begun.destroy();
    await until("its end", () => closed.includes("/begun"));
    const body = relayRequest(way, { path: "/body", method: "POST", headers: { "content-length": "10" } });
    body.write("half");
    await until("the body", () => node.engine.requests.length === 3);
    body.destroy();
    await until("its end", () => closed.includes("/body"));
  });

  test("that break off at the engine do not end as if they were complete", async () => {
    node.engine.script = (_request, response) => {
      response.writeHead(200, SSE).write("data: half\n\n", () => response.destroy());
    };
    const answer = await headOf(relayRequest(way).end());
    await expect(text(answer)).rejects.toThrow("aborted");
  });

  test("that are not read stall their engine, use no memory and do not affect other callers", async () => {
    let written = 0;
    node.engine.script = (request, response) => {
      if (request.url !== "/endless") return void response.end("fast");
      const write = (): void => {
        while (response.writable && response.write(Buffer.alloc(64 * 1024))) written += 64 * 1024;
      };
      response.on("drain", write);
      write();
    };
    const slow = relayRequest(way, { path: "/endless" }).end();
    const answer = await headOf(slow);
    answer.pause();
    let before = -1;
    await waitFor("the engine to stand still", WAIT_MS, async () => {
      const still = written === before;
      before = written;
      return still;
    });
    expect(written).toBeLessThan(16 * MB);
    collectGarbage();
    const memory = process.memoryUsage().rss;
    for (let call = 0; call < 50; call++) expect((await answerOf(relayRequest(way))).text).toBe("fast");
    collectGarbage();
    expect(process.memoryUsage().rss - memory).toBeLessThan(64 * MB);
    expect(written).toBe(before);
    slow.destroy();
  });
});

describe("the relay itself", () => {
  const refusal = (code: string): object => ({
    error: {
      message: expect.any(String),
      code,
      param: null,
      source: expect.any(String),
      requestId: expect.any(String),
    },
  });

  test.each([
    ["no token", null],
    ["a malformed token", "nonsense"],
    ["a token of another installation", "eyJhbGciOiJFZERTQSJ9.eyJhdWQiOiJ4In0.AAAA"],
  ])("responds to %s with 401 in the usual form", async (_name, token) => {
    const answer = await answerOf(relayRequest(way, { token }));
    expect(answer).toMatchObject({ status: 401, headers: { "www-authenticate": "Bearer" } });
    expect(JSON.parse(answer.text)).toMatchObject(refusal("invalid_credential"));
    expect(node.engine.requests).toEqual([]);
  });

  test("accepts neither a session token nor a token in the query or a cookie", async () => {
    expect((await answerOf(relayRequest(way, { token: owner.token }))).status).toBe(401);
    const inQuery = `/?authToken=${way.authToken}&access_token=${way.authToken}&token=${way.authToken}`;
    expect((await answerOf(relayRequest(way, { token: null, path: inQuery }))).status).toBe(401);
    const headers = {
      cookie: `authToken=${way.authToken}`,
      "sec-websocket-protocol": `fairlead.token.${way.authToken}`,
    };
    expect((await answerOf(relayRequest(way, { token: null, headers }))).status).toBe(401);
    expect(node.engine.requests).toEqual([]);
  });

  test("accepts its token for nothing else on the platform", async () => {
    const answer = await answerOf(relayRequest(way, { target: `/v1/nodes/${node.id}` }));
    expect([answer.status, answer.text]).toEqual([401, expect.stringContaining("workload-connect token")]);
  });

  test("returns 502 for an engine that breaks off before its response, and 503 if none listens", async () => {
    node.engine.script = (request) => request.socket.destroy();
    const broken = await answerOf(relayRequest(way));
    expect(broken.status).toBe(502);
    expect(JSON.parse(broken.text)).toMatchObject(refusal("upstream_failed"));
  });
});
