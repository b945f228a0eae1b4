import { once } from "node:events";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { CallEnd } from "../calls/inference-call.ts";
import type { ModelCatalog } from "../calls/model-catalog.ts";
import { createInferenceHost, type InferenceHost } from "../host/inference-host.ts";
import { chunk, DONE, JSON_TYPE, PLACE, SSE } from "../relay/call-relay.fixture.ts";
import { asKey } from "../testing/callers.ts";
import { HttpUpstreams } from "./http-upstreams.ts";

/** The whole way from an HTTP caller to a provider over HTTP and back. */

let provider: Server;
let onRequest: RequestListener;
let upstreams: HttpUpstreams;
let host: InferenceHost;
let ends: CallEnd[];

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

beforeEach(async () => {
  provider = createServer((request, response) => onRequest(request, response));
  await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve));
  upstreams = new HttpUpstreams({ clock: systemClock });
  ends = [];
  const headers = { authorization: "Bearer provider-secret" };
  const target = { id: "prv_1", baseUrl: `http://127.0.0.1:${portOf(provider)}/v1`, headers };
  const models: ModelCatalog = {
    resolve: (_project, name) =>
      Promise.resolve({
        name,
        candidates: [
          {
            ...PLACE,
            upstreamId: "openai",
            kind: "provider",
            model: name.slice(name.indexOf("/") + 1),
            protocols: ["chat", "responses"],
            open: () => upstreams.open({ ...target, connectMs: 5000, allowPrivate: true }),
          },
        ],
      }),
    defaultModel: () => Promise.resolve(null),
    list: () => Promise.resolve([]),
    entry: (_project, id) => Promise.resolve({ id, object: "model", created: 1, owned_by: "openai" }),
  };
  host = createInferenceHost({
    callers: { authenticate: () => Promise.resolve(asKey("prj_1")) },
    models,
    ids: systemIds(() => 0),
    clock: systemClock,
    log: pino({ level: "silent" }),
    onEnded: (end) => void ends.push(end),
  });
  await new Promise<void>((resolve) => host.server.listen(0, "127.0.0.1", resolve));
});

afterEach(async () => {
  await host.drain(0);
  await upstreams.close();
  provider.closeAllConnections();
  provider.close();
});

interface Sent {
  readonly path?: string;
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

function send({ path = "/v1/chat/completions", body = "", headers = {} }: Sent) {
  const all = { authorization: "Bearer flk_ours", "content-type": "application/json", ...headers };
  const request = httpRequest({ port: portOf(host.server), path, method: "POST", headers: all, agent: false });
  request.on("error", () => undefined);
  request.end(body);
  const answer = once(request, "response").then(([message]) => message as IncomingMessage);
  answer.catch(() => undefined);
  return { request, answer };
}

const STREAM = '{"model":"openai/gpt","stream":true,"messages":[]}';

describe("a call to a provider", () => {
  test.each([
    ["content-type", "application/json", "text/html"],
    ["content-encoding", "identity", "gzip"],
    ["retry-after", "1", "2"],
    ["retry-after-ms", "1", "2"],
    ["x-ratelimit-remaining-requests", "1", "2"],
    ["connection", "keep-alive", "keep-alive"],
    ["date", "Mon, 01 Jan 2026 00:00:00 GMT", "now"],
    ["set-cookie", "a=b", "c=d"],
  ])("survives a provider that sends `%s` twice", async (name, first, second) => {
    for (const status of [200, 429, 500]) {
      onRequest = (request) => {
        const head = `HTTP/1.1 ${status} x\r\ncontent-length: 2\r\n${name}: ${first}\r\n${name}: ${second}\r\n\r\n`;
        request.socket.write(`${head}{}`);
      };
      const { answer } = send({ body: '{"model":"openai/gpt"}' });
      await text(await answer);
    }
    expect(ends).toHaveLength(3);
  });

  test("reports which provider could not be reached, and why", async () => {
    provider.close();
    const message = await send({ body: STREAM }).answer;
    expect(message.statusCode).toBe(502);
    expect(JSON.parse(await text(message))).toMatchObject({
      error: { code: "upstream_failed", message: "openai: connection refused", source: "provider" },
    });
  });

  test("keeps the credentials and headers of the caller and the provider separate", async () => {
    let seen: IncomingMessage["headers"] = {};
    onRequest = (request, response) => {
      seen = request.headers;
      response.writeHead(200, {
        ...JSON_TYPE,
        "set-cookie": "session=1",
        "openai-organization": "org-of-the-platform",
        "x-ratelimit-remaining-requests": "9",
        "x-request-id": "theirs",
        connection: "close",
      });
      response.end("{}");
    };
    const { answer } = send({
      body: '{"model":"openai/gpt"}',
      headers: {
        cookie: "session=ours",
        "x-api-key": "secret",
        // headroomlabs-ai/headroom#3122: a list of forbidden names can miss one.
        "x-operators-own": "secret",
        "x-forwarded-for": "10.0.0.1",
        "openai-organization": "org-of-the-caller",
        "x-stainless-lang": "js",
        "idempotency-key": "1",
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      },
    });
    const { headers } = await answer;
    expect(Object.keys(seen).sort()).toEqual([
      "accept",
      "accept-encoding",
      "authorization",
      "connection",
      "content-length",
      "content-type",
      "host",
      "traceparent",
    ]);
    expect(seen).toMatchObject({ authorization: "Bearer provider-secret", "accept-encoding": "identity" });
    expect(headers).toMatchObject({ "x-ratelimit-remaining-requests": "9", "x-fairlead-upstream": "openai" });
    expect(headers["x-request-id"]).toMatch(/^req_/);
    expect(Number(headers["x-fairlead-overhead-ms"])).toBeGreaterThanOrEqual(0);
    for (const name of ["set-cookie", "openai-organization"]) expect(headers).not.toHaveProperty(name);
  });

  test("is forwarded as submitted, compressed or not", async () => {
    let seen = "";
    onRequest = (request, response) => {
      void text(request).then((body) => {
        seen = body;
        response.writeHead(200, JSON_TYPE).end("{}");
      });
    };
    const body = '{ "seed": 12345678901234567890, "chat_template_kwargs":{"x":null}, "model": "openai/a/b" }';
    await (await send({ body: gzipSync(body), headers: { "content-encoding": "gzip" } }).answer).toArray();
    expect(seen).toBe('{ "seed": 12345678901234567890, "chat_template_kwargs":{"x":null}, "model": "a/b" }');
  });

  test("returns a native stream byte for byte, however it is split", async () => {
    const event = (type: string, sequence: number, rest: object): string =>
      `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence, ...rest })}\n\n`;
    const usage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 };
    const stream =
      event("response.created", 0, { response: { id: "resp_1", error: null } }) +
      event("response.output_text.delta", 1, { delta: "Grüße 👋" }) +
      event("response.completed", 2, { response: { id: "resp_1", usage } });
    onRequest = (_request, response) => {
      response.writeHead(200, SSE);
      const bytes = Buffer.from(stream);
      for (let at = 0; at < bytes.length; at += 7) response.write(bytes.subarray(at, at + 7));
      response.end();
    };
    const { answer } = send({ path: "/v1/responses", body: '{"model":"openai/gpt","input":"x","stream":true}' });
    expect(await text(await answer)).toBe(stream);
    await vi.waitFor(() => expect(ends).toMatchObject([{ dialect: "responses", usage: { inputTokens: 3 } }]));
  });

  test("of 20 MB succeeds, and its body is released once the response begins", async () => {
    let received = 0;
    onRequest = (request, response) => {
      void buffer(request).then((body) => {
        received = body.length;
        response.writeHead(200, SSE);
        response.write(chunk("Hi"));
      });
    };
    const body = JSON.stringify({ model: "openai/gpt", stream: true, messages: [{ content: "x".repeat(20_000_000) }] });
    const { request, answer } = send({ body });
    await answer;
    // The name is shorter by its provider; the wish for usage is longer.
    expect(received).toBe(body.length - "openai/".length + '"stream_options":{"include_usage":true},'.length);
    expect(host.load).toEqual({ callsInFlight: 1, bufferedBytes: 0 });
    request.destroy();
    await vi.waitFor(() => expect(host.load.callsInFlight).toBe(0));
  });
});

describe("a provider's response", () => {
  test("reaches the caller with its encoding if the provider compresses it unasked", async () => {
    const body = gzipSync(JSON.stringify({ choices: [], text: "x".repeat(1000) }));
    onRequest = (_request, response) => {
      response.writeHead(200, { ...JSON_TYPE, "content-encoding": "gzip", "content-length": body.length });
      response.end(body);
    };
    const answer = await send({ body: '{"model":"openai/gpt"}' }).answer;
    expect(answer.headers).toMatchObject({ "content-encoding": "gzip", "content-length": String(body.length) });
    expect((await buffer(answer)).equals(body)).toBe(true);
  });

  // remix-run/remix#10759: both together are a mistake of the protocol, and smuggling where two read them differently.
  test.each([
    ["a non-streaming response with a length", JSON_TYPE, '{"choices":[]}', '{"model":"openai/gpt"}'],
    ["a stream with a length", SSE, chunk("Hi") + DONE, STREAM],
  ])("never has both a length and chunks: %s", async (...row) => {
    const [, type, body, submitted] = row;
    onRequest = (_request, response) => {
      response.writeHead(200, { ...type, "content-length": Buffer.byteLength(body) }).end(body);
    };
    const answer = await send({ body: submitted }).answer;
    expect(await text(answer)).toBe(body);
    const framed = ["content-length", "transfer-encoding"].filter((name) => name in answer.headers);
    expect(framed).toHaveLength(1);
  });

  test("breaks the caller's connection if it is shorter than its length", async () => {
    onRequest = (_request, response) => {
      response.writeHead(200, { ...JSON_TYPE, "content-length": "9000000" });
      response.write(`{"half":"${"x".repeat(1_000_000)}`, () => response.destroy());
    };
    const answer = await send({ body: '{"model":"openai/gpt"}' }).answer;
    await expect(text(answer)).rejects.toThrow("aborted");
    await vi.waitFor(() => expect(ends).toMatchObject([{ outcome: "upstream_failed" }]));
  });
});

describe("a caller that disconnects", () => {
  test.each(["before the provider answers", "in the middle of a stream"])("stops the provider %s", async (when) => {
    const inside = Promise.withResolvers<ServerResponse>();
    onRequest = (_request, response) => {
      if (when !== "before the provider answers") {
        response.writeHead(200, SSE);
        response.write(chunk("Hi"));
      }
      inside.resolve(response);
    };
    const { request, answer } = send({ body: STREAM });
    const response = await inside.promise;
    if (when !== "before the provider answers") await answer;
    request.destroy();
    await once(response, "close");
    await vi.waitFor(() => expect(ends).toMatchObject([{ outcome: "client_left" }]));
  });

  test("without having read costs little memory and pauses the provider", async () => {
    const piece = Buffer.from(`data: ${"x".repeat(16_000)}\n\n`);
    let written = 0;
    let stalled: ServerResponse | undefined;
    onRequest = (_request, response) => {
      stalled = response;
      response.writeHead(200, SSE);
      const fill = (): void => {
        do written += piece.length;
        while (response.write(piece));
      };
      response.on("drain", fill);
      fill();
    };
    const ours = once(host.server, "request") as Promise<[IncomingMessage, ServerResponse]>;
    const { request, answer } = send({ body: STREAM });
    (await answer).pause();
    let last = -1;
    const settled = (): void => {
      const before = last;
      last = written;
      expect(before).toBe(written);
    };
    await vi.waitFor(settled, { timeout: 20_000, interval: 100 });
    const [, response] = await ours;
    expect(response.writableLength + (response.socket?.writableLength ?? 0)).toBeLessThan(512 * 1024);
    expect(stalled?.writableNeedDrain).toBe(true);
    request.destroy();
    await vi.waitFor(() => expect(stalled?.destroyed).toBe(true));
  });
});

describe("GET /v1/models/{id}", () => {
  test.each(["openai/gpt-5", "openai%2Fgpt-5", "openai/ft:gpt/own:x%3Fy", "openai/a/b/c"])(
    "returns the model %s",
    async (id) => {
      const url = `http://127.0.0.1:${portOf(host.server)}/v1/models/${id}`;
      const answer = await fetch(url, { headers: { authorization: "Bearer flk_ours" } });
      expect(await answer.json()).toMatchObject({ id: decodeURIComponent(id), object: "model" });
    },
  );
});

test("a stream is metered by its usage chunk, which the caller gets only if it requested it", async () => {
  let asked = "";
  const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 2, completion_tokens: 1 } })}\n\n`;
  onRequest = (request, response) => {
    void text(request).then((body) => {
      asked = body;
      response.writeHead(200, SSE).end(chunk("Hi") + usage + DONE);
    });
  };
  expect(await text(await send({ body: STREAM }).answer)).toBe(chunk("Hi") + DONE);
  expect(JSON.parse(asked)).toMatchObject({ stream_options: { include_usage: true } });
  const wants = '{"model":"openai/gpt","stream":true,"stream_options":{"include_usage":true}}';
  expect(await text(await send({ body: wants }).answer)).toBe(chunk("Hi") + usage + DONE);
  const told = { outcome: "ok", estimated: false, usage: { inputTokens: 2, outputTokens: 1 } };
  await vi.waitFor(() => expect(ends).toMatchObject([told, told]));
  expect(ends[0]?.firstTokenMs).toBeGreaterThan(0);
});
