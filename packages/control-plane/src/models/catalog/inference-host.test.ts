import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { createInferenceHost, type InferenceHost } from "@fairlead/inference/host/inference-host";
import type { InferenceLimits } from "@fairlead/inference/host/limits";
import type { CallerAuthenticator, EngineTarget } from "@fairlead/inference/ports/ports";
import { asKey } from "@fairlead/inference/testing/callers";
import { DomainError, type ErrorCode } from "@fairlead/protocol/errors";
import { systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import type { TunnelTransport } from "@fairlead/wire/tunnel-transport";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { nodesCatalog } from "./model-catalog.fixture.ts";

const KEY = "flk_good";
const ENGINE: EngineTarget = {
  nodeId: "nod_1",
  identifier: "box",
  workload: "engine",
  absence: null,
  models: ["tiny"],
  since: 1500,
  protocols: ["chat"],
  chat: {},
};
const SLEEPING = { ...ENGINE, nodeId: "nod_2", identifier: "sleeping", absence: "It starts." };
const UNREACHABLE = { ...ENGINE, nodeId: "nod_3", identifier: "unreachable" };

/** An engine that answers every call with 200 and nothing. */
const tunnel: TunnelTransport = {
  open: (_request, handler) => {
    setImmediate(() => {
      handler.onHeaders(200, { "content-type": "application/json" });
      handler.onData(Buffer.from("{}"));
      handler.onEnd();
    });
    return { resume: () => undefined, abort: () => undefined };
  },
};

let host: InferenceHost;
let authenticate: CallerAuthenticator["authenticate"];

beforeEach(async () => {
  authenticate = (secret) =>
    secret === KEY
      ? Promise.resolve(asKey("prj_1"))
      : Promise.reject(new DomainError("invalid_credential", "This key is unknown."));
  await start();
});

async function start(more: Partial<InferenceLimits> = {}): Promise<void> {
  const targets = [ENGINE, SLEEPING, UNREACHABLE];
  host = createInferenceHost({
    callers: { authenticate: (secret) => authenticate(secret) },
    models: nodesCatalog(() => targets, { get: (nodeId) => (nodeId === ENGINE.nodeId ? tunnel : null) }),
    ids: systemIds(() => 0),
    clock: systemClock,
    log: pino({ level: "silent" }),
    limits: { maxBodyBytes: 1000, maxBufferedBytes: 2400, maxCallsInFlight: 2, ...more },
  });
  await new Promise<void>((resolve) => host.server.listen(0, "127.0.0.1", resolve));
}

afterEach(async () => {
  await host.drain(0);
});

const port = (): number => (host.server.address() as AddressInfo).port;

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: { error: { code: string; param: string | null; message: string; requestId: string } };
}

interface Call extends RequestInit {
  readonly headers?: Record<string, string>;
}

async function ask(path: string, init: Call = {}): Promise<Answer> {
  const headers = { authorization: `Bearer ${KEY}`, ...init.headers };
  const answer = await fetch(`http://127.0.0.1:${port()}${path}`, { ...init, headers });
  expect(answer.headers.get("x-request-id")).toMatch(/^req_/);
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Answer["body"] };
}

const chat = (body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  ask("/v1/chat/completions", {
    method: "POST",
    headers,
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

async function open(): Promise<Socket> {
  const socket = connect(port(), "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

const HEAD = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n`;

describe("the inference host", () => {
  test("responds to health checks without a key", async () => {
    expect(await ask("/healthz", { headers: { authorization: "" } })).toMatchObject({
      status: 200,
      body: { status: "ok" },
    });
  });

  test("responds to unknown routes and wrong methods in the error format", async () => {
    expect(await ask("/nothing")).toMatchObject({ status: 404, body: { error: { code: "not_found", param: null } } });
    const wrong = await ask("/v1/chat/completions");
    expect(wrong).toMatchObject({ status: 405, body: { error: { code: "method_not_allowed" } } });
    expect(wrong.headers.get("allow")).toBe("POST");
    expect(wrong.headers.get("x-should-retry")).toBe("false");
    expect(wrong.body.error.requestId).toBe(wrong.headers.get("x-request-id"));
  });

  test.each([
    ["no key", "", "project key"],
    ["another scheme", "Basic abc", "project key"],
    ["an unknown key", "Bearer flk_bad", "unknown"],
  ])("rejects %s with 401 and says what to do", async (_name, authorization, hint) => {
    for (const answer of [
      await chat({ model: "box/tiny" }, { authorization }),
      await ask("/v1/models", { headers: { authorization } }),
    ]) {
      expect(answer).toMatchObject({ status: 401, body: { error: { code: "invalid_credential" } } });
      expect(answer.body.error.message).toContain(hint);
      expect(answer.headers.get("www-authenticate")).toBe("Bearer");
      expect(answer.headers.get("x-should-retry")).toBe("false");
    }
  });

  test("returns 503, never 401, when a key cannot be checked", async () => {
    authenticate = () => Promise.reject(new DomainError("unavailable", "The store is away.", { retryAfterSeconds: 2 }));
    const answer = await chat({ model: "box/tiny" });
    expect(answer).toMatchObject({ status: 503, body: { error: { code: "unavailable" } } });
    expect(answer.headers.get("retry-after")).toBe("2");
  });

  test("does not reveal internal errors", async () => {
    authenticate = () => Promise.reject(new TypeError("secret detail"));
    const answer = await chat({ model: "box/tiny" });
    expect(answer).toMatchObject({ status: 500, body: { error: { code: "internal" } } });
    expect(JSON.stringify(answer.body)).not.toContain("secret");
  });

  test.each<[string, string, ErrorCode]>([
    ["without a provider", "tiny", "model_not_found"],
    ["of an unknown provider", "other/tiny", "model_not_found"],
    ["that its engine does not serve", "box/huge", "model_not_found"],
    ["with nothing before the slash", "/tiny", "model_not_found"],
    ["of an engine that is not ready", "sleeping/tiny", "no_running_engine"],
    ["of a node without a tunnel", "unreachable/tiny", "no_running_engine"],
  ])("returns the right error for a model %s, in calls and look-ups alike", async (_name, model, code) => {
    const refusal = { status: code === "model_not_found" ? 404 : 503, body: { error: { code } } };
    expect(await chat({ model })).toMatchObject(refusal);
    const looked = await ask(`/v1/models/${encodeURIComponent(model)}`);
    expect(looked).toMatchObject(refusal);
    expect(looked.headers.get("retry-after")).toBe(code === "model_not_found" ? null : "5");
  });

  test("requires a model", async () => {
    const answer = await chat({ messages: [] });
    expect(answer).toMatchObject({ status: 400, body: { error: { code: "invalid_request", param: "model" } } });
    expect(answer.body.error.message).toContain("/v1/models");
  });

  test("lists and looks up the models that can be called", async () => {
    const entry = { id: "box/tiny", object: "model", created: 1, owned_by: "box" };
    expect((await ask("/v1/models?limit=1")).body).toEqual({ object: "list", data: [entry] });
    expect((await ask("/v1/models/box/tiny")).body).toEqual(entry);
    expect((await ask("/v1/models/%E0%A4%A")).status).toBe(400);
  });

  test("limits a key with a model list to those models, in lists and calls, and reveals no others", async () => {
    authenticate = () => Promise.resolve(asKey("prj_1", { modelAllowList: ["sleeping/*", "box/tiny"] }));
    expect((await ask("/v1/models")).body).toMatchObject({ data: [{ id: "box/tiny" }] });
    expect(await chat({ model: "sleeping/tiny" })).toMatchObject({ status: 503 });
    authenticate = () => Promise.resolve(asKey("prj_1", { modelAllowList: ["sleeping/*"] }));
    // Nothing is left: the list says why.
    expect((await ask("/v1/models")).body).toEqual({ object: "list", data: [], model_allow_list: ["sleeping/*"] });
    const refusal = { status: 403, body: { error: { code: "model_not_allowed", param: "model" } } };
    for (const model of ["box/tiny", "unreachable/tiny", "there/is/none"]) {
      expect(await chat({ model })).toMatchObject(refusal);
      expect(await ask(`/v1/models/${model}`)).toMatchObject(refusal);
    }
  });

  test("rejects a body that is not JSON or has an unknown compression", async () => {
    expect(await chat('{"model":')).toMatchObject({ status: 400, body: { error: { code: "malformed_json" } } });
    expect(await chat("{}", { "content-encoding": "compress" })).toMatchObject({
      status: 415,
      body: { error: { code: "unsupported_media_type", param: "content-encoding" } },
    });
  });

  test("rejects a body over the limit, declared or not, without waiting for it", async () => {
    const declared = await open();
    declared.write(`${HEAD}content-length: 1001\r\n\r\n`);
    const [first] = (await once(declared, "data")) as [Buffer];
    expect(first.toString()).toContain("HTTP/1.1 413");
    expect(first.toString()).toContain('"code":"request_too_large"');
    declared.destroy();
    const chunked = await open();
    chunked.write(`${HEAD}transfer-encoding: chunked\r\n\r\n400\r\n${"x".repeat(0x400)}\r\n`);
    const [second] = (await once(chunked, "data")) as [Buffer];
    expect(second.toString()).toContain("HTTP/1.1 413");
    chunked.destroy();
    await vi.waitFor(() => expect(host.load).toEqual({ callsInFlight: 0, bufferedBytes: 0 }));
  });

  test("does not let a body in tiny chunks cost more than the budget counts", async () => {
    const socket = await open();
    socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(100)}`);
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/HTTP\/1\.1 (413|503)/);
    socket.destroy();
  });

  test("sends 100 Continue only for a request that it will read", async () => {
    const good = await open();
    good.write(`${HEAD}content-length: 20\r\nexpect: 100-continue\r\n\r\n`);
    const [first] = (await once(good, "data")) as [Buffer];
    expect(first.toString()).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    good.write('{"model":"box/tiny"}');
    const [second] = (await once(good, "data")) as [Buffer];
    expect(second.toString()).toContain("HTTP/1.1 200");
    good.destroy();
    const large = await open();
    large.write(`${HEAD}content-length: 2000\r\nexpect: 100-continue\r\n\r\n`);
    const [refusal] = (await once(large, "data")) as [Buffer];
    expect(refusal.toString()).toMatch(/^HTTP\/1\.1 413/);
    large.destroy();
  });

  test("rejects too many calls or too many bytes immediately", async () => {
    const slow = await open();
    slow.write(`${HEAD}content-length: 900\r\n\r\n{`);
    const slower = await open();
    slower.write(`${HEAD}content-length: 900\r\n\r\n{`);
    await vi.waitFor(() => expect(host.load.callsInFlight).toBe(2));
    const refused = await chat({ model: "box/tiny" });
    expect(refused).toMatchObject({ status: 503, body: { error: { code: "overloaded" } } });
    expect(refused.headers.get("retry-after")).toBe("1");
    expect((await ask("/healthz")).status).toBe(200);
    expect((await ask("/readyz")).status).toBe(200);
    slow.destroy();
    slower.destroy();
    await vi.waitFor(() => expect(host.load).toEqual({ callsInFlight: 0, bufferedBytes: 0 }));
  });

  test("aborts an upload that takes too long, and releases its memory", async () => {
    await host.drain(0);
    await start({ uploadMs: 200 });
    const slow = await open();
    slow.write(`${HEAD}content-length: 900\r\n\r\n{`);
    const answer = await text(slow);
    expect(answer).toMatch(/^HTTP\/1\.1 408/);
    expect(answer).toContain('"code":"request_timeout"');
    await vi.waitFor(() => expect(host.load).toEqual({ callsInFlight: 0, bufferedBytes: 0 }));
  });

  test("responds to invalid HTTP and oversized headers in the error format, and closes the connection", async () => {
    const broken = await open();
    broken.write("NOT HTTP\r\n\r\n");
    expect(await text(broken)).toMatch(/^HTTP\/1\.1 400 [^]*"code":"invalid_request"/);
    const huge = await open();
    huge.write(`GET / HTTP/1.1\r\nhost: x\r\nx: ${"a".repeat(70_000)}\r\n\r\n`);
    expect(await text(huge)).toMatch(/^HTTP\/1\.1 431 [^]*"code":"headers_too_large"/);
  });
});
