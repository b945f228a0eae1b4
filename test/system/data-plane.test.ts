import { once } from "node:events";
import { type ClientRequest, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { connect as connectSocket } from "node:net";
import { text } from "node:stream/consumers";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DataPlane, NODE_ID, PROJECT_KEY } from "../support/data-plane.ts";
import { readBytes } from "../support/scripted-engine.ts";
import { selfSigned } from "../support/self-signed.ts";
import { waitFor } from "../support/wait-for.ts";

const WAIT_MS = 60_000;
const SSE = { "content-type": "text/event-stream" };
const JSON_TYPE = { "content-type": "application/json" };

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

let plane: DataPlane;

beforeEach(async () => {
  plane = new DataPlane();
  await plane.start();
});

afterEach(async () => {
  await plane.stop();
});

function chat(body: unknown, signal?: AbortSignal): Promise<Response> {
  return fetch(`${plane.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${PROJECT_KEY}`, "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(signal ? { signal } : {}),
  });
}

/** A call whose answer nobody reads until the test does. */
function rawChat(body: string): ClientRequest {
  const request = httpRequest(`${plane.url}/v1/chat/completions`, {
    method: "POST",
    agent: false,
    headers: { authorization: `Bearer ${PROJECT_KEY}`, "content-length": Buffer.byteLength(body) },
  });
  request.on("error", () => undefined);
  request.end(body);
  return request;
}

const until = (what: string, ask: () => boolean): Promise<unknown> =>
  waitFor(what, WAIT_MS, () => Promise.resolve(ask()));

const CALL = { model: "node-1/tiny", messages: [{ role: "user", content: "hi" }] };
const STREAM = { ...CALL, stream: true };

describe("a call through the whole data plane", () => {
  test("reaches the engine as submitted, except for the model's provider, and returns the engine's JSON", async () => {
    let seen = "";
    plane.engine.script = async (request, response) => {
      seen = (await readBytes(request)).toString("utf8");
      response.writeHead(200, { ...JSON_TYPE, "x-secret": "1", "x-ratelimit-limit-requests": "9" }).end('{"ok": 1 }');
    };
    const submitted = '{ "big": 12345678901234567890,\n"model" : "node-1/org/large", "é": "\\u00e9"}';
    const answer = await chat(submitted);
    expect(answer.status).toBe(200);
    expect(await answer.text()).toBe('{"ok": 1 }');
    expect(seen).toBe(submitted.replace("node-1/org/large", "org/large"));
    expect(answer.headers.get("x-request-id")).toMatch(/^req_/);
    expect(answer.headers.get("x-ratelimit-limit-requests")).toBe("9");
    expect(answer.headers.get("x-secret")).toBeNull();
    const headers = plane.engine.requests[0]?.headers ?? {};
    expect(headers.authorization).toBeUndefined();
    expect(headers["accept-encoding"]).toBe("identity");
    expect(Object.keys(headers).filter((name) => name.startsWith("fairlead"))).toEqual([]);
  });

  test("relays a healthy event stream byte for byte, including characters split between chunks", async () => {
    const events = Buffer.from('data: {"t":"héllo 🌍"}\r\n\r\ndata: {"t":"…"}\n\n: note\n\ndata: [DONE]\n\n');
    plane.engine.script = async (request, response) => {
      await readBytes(request);
      response.writeHead(200, SSE);
      for (const byte of events) {
        response.write(Buffer.from([byte]));
        await new Promise(setImmediate);
      }
      response.end();
    };
    const answer = await chat(STREAM);
    expect(answer.headers.get("content-type")).toBe("text/event-stream");
    expect(answer.headers.get("content-length")).toBeNull();
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(events);
  });

  test("returns the engine's own error message in the form of every error", async () => {
    const refusal = '{"error":{"code":400,"message":"too long","type":"exceed_context_size_error"}}';
    plane.engine.script = (_request, response) => response.writeHead(400, JSON_TYPE).end(refusal);
    const answer = await chat(CALL);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({
      error: {
        message: "too long",
        type: "invalid_request_error",
        code: "context_length_exceeded",
        param: null,
        source: "provider",
        requestId: answer.headers.get("x-request-id"),
      },
    });
  });

  test("carries a body of 20 MB", async () => {
    let length = 0;
    plane.engine.script = async (request, response) => {
      length = (await readBytes(request)).length;
      response.writeHead(200, JSON_TYPE).end("{}");
    };
    const body = JSON.stringify({ ...CALL, image: "x".repeat(20 * 1024 * 1024) });
    const answer = await chat(body);
    expect(answer.status).toBe(200);
    expect(length).toBe(body.length - "node-1/".length);
    await until("the budget to be free", () => plane.host.load.bufferedBytes === 0);
  });

  test("keeps none of the request in memory once its response has begun", async () => {
    plane.engine.script = async (request, response) => {
      for await (const _piece of request);
      response.writeHead(200, SSE).write("data: 1\n\n");
    };
    const body = JSON.stringify({ ...STREAM, image: "x".repeat(10 * 1024 * 1024) });
    const requests: ClientRequest[] = [];
    for (let i = 0; i < 8; i++) {
      const request = rawChat(body);
      requests.push(request);
      const [answer] = (await once(request, "response")) as [IncomingMessage];
      await once(answer, "data");
    }
    expect(plane.host.load).toEqual({ callsInFlight: 8, bufferedBytes: 0 });
    await until("the bodies to be gone", () => {
      collectGarbage();
      return process.memoryUsage().arrayBuffers < 40 * 1024 * 1024;
    });
    for (const request of requests) request.destroy();
  });

  test("carries 200 concurrent streams", async () => {
    plane.engine.script = async (request, response) => {
      const id = (JSON.parse((await readBytes(request)).toString()) as { id: number }).id;
      response.writeHead(200, SSE);
      for (let i = 0; i < 20; i++) {
        response.write(`data: ${id}.${i}\n\n`);
        await new Promise(setImmediate);
      }
      response.end("data: [DONE]\n\n");
    };
    const answers = await Promise.all(Array.from({ length: 200 }, (_, id) => chat({ ...STREAM, id })));
    const texts = await Promise.all(answers.map((answer) => answer.text()));
    texts.forEach((answer, id) => {
      const expected = Array.from({ length: 20 }, (_, i) => `data: ${id}.${i}\n\n`).join("");
      expect(answer).toBe(`${expected}data: [DONE]\n\n`);
    });
  });
});

describe("over https", () => {
  test("the tunnel carries calls in both directions, repeatedly", async () => {
    const secure = new DataPlane({ tls: selfSigned() });
    await secure.start();
    const plain = plane;
    plane = secure;
    try {
      secure.engine.script = async (request, response) => {
        response.writeHead(200, JSON_TYPE).end(await readBytes(request));
      };
      const image = "x".repeat(5 * 1024 * 1024);
      for (let i = 0; i < 3; i++) {
        const answer = (await (await chat({ ...CALL, image })).json()) as { image: string };
        expect(answer.image.length).toBe(image.length);
        secure.link.close();
        await until("a new tunnel", () => secure.tunnelsOpened > i + 1 && secure.hub.get(NODE_ID) !== null);
      }
    } finally {
      plane = plain;
      await secure.stop();
    }
  });
});

describe("a caller", () => {
  test("that leaves before the response begins stops the engine", async () => {
    let closed = false;
    plane.engine.script = (_request, response) => {
      response.on("close", () => {
        closed = true;
      });
    };
    const request = rawChat(JSON.stringify(STREAM));
    await until("the engine to be asked", () => plane.engine.requests.length === 1);
    request.destroy();
    await until("the engine to be told", () => closed);
    await until("the call to be over", () => plane.host.load.callsInFlight === 0);
  });

  test("that leaves in mid-stream stops the engine", async () => {
    let closed = false;
    plane.engine.script = (_request, response) => {
      response.on("close", () => {
        closed = true;
      });
      response.writeHead(200, SSE).write("data: 1\n\n");
    };
    const leave = new AbortController();
    const answer = await chat(STREAM, leave.signal);
    await answer.body?.getReader().read();
    leave.abort();
    await until("the engine to be told", () => closed);
  });

  test("that leaves during its upload releases its memory, and the call never reaches the engine", async () => {
    const request = httpRequest(`${plane.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${PROJECT_KEY}`, "content-length": 1_000_000 },
    });
    request.on("error", () => undefined);
    request.write('{"model": "node-1/tiny", ');
    await until("the upload to be held", () => plane.host.load.bufferedBytes > 0);
    request.destroy();
    await until("the memory to be free", () => plane.host.load.bufferedBytes === 0);
    expect(plane.host.load.callsInFlight).toBe(0);
    expect(plane.engine.requests).toEqual([]);
  });

  test("that never reads stalls the engine instead of filling the server's memory", async () => {
    const total = 400 * 1024 * 1024;
    let written = 0;
    let answering: ServerResponse | undefined;
    plane.engine.script = (_request, response) => {
      answering = response;
      response.writeHead(200, SSE);
      const piece = Buffer.from(`data: ${"x".repeat(16_000)}\n\n`);
      const fill = (): void => {
        while (written < total && !response.destroyed) {
          written += piece.length;
          if (!response.write(piece)) return;
        }
      };
      response.on("drain", fill);
      fill();
    };
    const request = rawChat(JSON.stringify(STREAM));
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    answer.pause();
    let last = -1;
    await until("the engine to stall", () => {
      const stalled = written === last && written > 0;
      last = written;
      return stalled;
    });
    expect(answering?.writableNeedDrain).toBe(true);
    // Kernel socket buffers of four connections and one stream window; nothing that grows.
    expect(written).toBeLessThan(64 * 1024 * 1024);
    await until("what was relayed to be gone", () => {
      collectGarbage();
      return process.memoryUsage().arrayBuffers < 16 * 1024 * 1024;
    });
    request.destroy();
    await until("the engine to be told", () => answering?.destroyed === true);
  });
});

describe("a response that is cut off", () => {
  const FIRST = 'data: {"t": 1}\n\n';
  /** Its second event never gets whole, and so is never sent on. */
  const HALF = `${FIRST}data: {"t"`;

  async function streamBrokenBy(fault: (response: ServerResponse) => void): Promise<string> {
    let answering: ServerResponse | undefined;
    plane.engine.script = (_request, response) => {
      answering = response;
      response.writeHead(200, SSE).write(HALF);
    };
    const answer = await chat(STREAM);
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (!reader || !answering) throw new Error("no stream");
    let received = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return received;
      received += value;
      if (received === FIRST) fault(answering);
    }
  }

  test("in mid-event is reported in-band and never ends as if it were complete", async () => {
    const received = await streamBrokenBy((response) => response.destroy());
    expect(received.startsWith(`${FIRST}data: {"error":{`)).toBe(true);
    expect(received.endsWith("}\n\n")).toBe(true);
    expect(received).toContain('"code":"upstream_failed"');
    expect(received).not.toContain("[DONE]");
  });

  test.each([
    ["the daemon's end closes", () => void plane.tunnel?.close()],
    ["the daemon's machine closes the connection", () => plane.link.close()],
    ["the network goes silent", () => plane.link.stall()],
    ["the node is disconnected", () => plane.hub.disconnect(NODE_ID)],
  ])("because %s is reported in-band", async (_name, fault) => {
    const received = await streamBrokenBy(fault);
    expect(received).toContain(`${FIRST}data: {"error":{`);
    expect(received).toContain('"code":"upstream_failed"');
  });

  test("in mid-JSON also closes the caller's connection", async () => {
    let answering: ServerResponse | undefined;
    plane.engine.script = (_request, response) => {
      answering = response;
      // More than one piece: the first of them waits for the next, as long as another upstream could be asked.
      response.writeHead(200, { ...JSON_TYPE }).write(`{"half":"${"x".repeat(1_000_000)}`);
    };
    const answer = await chat(CALL);
    answering?.destroy();
    await expect(answer.text()).rejects.toThrow("terminated");
  });

  test("before its headers returns 502", async () => {
    plane.engine.script = (request) => request.socket.destroy();
    const answer = await chat(CALL);
    expect(answer.status).toBe(502);
    expect(await answer.json()).toMatchObject({ error: { code: "upstream_failed", source: "provider" } });
  });

  test("does not affect the next call, because the tunnel reconnects by itself", async () => {
    plane.link.close();
    await until("a new tunnel", () => plane.tunnelsOpened > 1 && plane.hub.get(NODE_ID) !== null);
    plane.engine.script = (_request, response) => response.writeHead(200, JSON_TYPE).end("{}");
    expect((await chat(CALL)).status).toBe(200);
  });
});

describe("a call that cannot be served", () => {
  test("to a workload that does not run on the node returns 503 with a time to retry", async () => {
    plane.target = { ...plane.target, workload: "other" };
    const answer = await chat(CALL);
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after")).not.toBeNull();
    expect(await answer.json()).toMatchObject({ error: { code: "no_running_engine" } });
  });

  test("to an engine that does not listen returns 503", async () => {
    await plane.engine.stop();
    const answer = await chat(CALL);
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({ error: { code: "no_running_engine" } });
  });

  test("to a node without a tunnel returns 503, and its models are not listed", async () => {
    await plane.tunnel?.close();
    await until("the hub to notice", () => plane.hub.get(NODE_ID) === null);
    expect((await chat(CALL)).status).toBe(503);
    const models = await fetch(`${plane.url}/v1/models`, { headers: { authorization: `Bearer ${PROJECT_KEY}` } });
    expect(await models.json()).toEqual({ object: "list", data: [] });
  });
});

describe("draining", () => {
  test("lets a stream finish, rejects new calls on open connections, then closes", async () => {
    let answering: ServerResponse | undefined;
    plane.engine.script = (_request, response) => {
      answering = response;
      response.writeHead(200, SSE).write("data: 1\n\n");
    };
    const idle = connectSocket(Number(new URL(plane.url).port), "127.0.0.1");
    await once(idle, "connect");
    const answer = await chat(STREAM);
    idle.write("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n");
    const drained = plane.host.drain(WAIT_MS);
    idle.write("\r\n");
    const refusal = await text(idle);
    expect(refusal).toContain("HTTP/1.1 503");
    expect(refusal.toLowerCase()).toContain("connection: close");
    expect(refusal).toContain('"code":"unavailable"');
    answering?.end("data: [DONE]\n\n");
    expect(await answer.text()).toBe("data: 1\n\ndata: [DONE]\n\n");
    await drained;
  });

  test("ends calls that still run at the deadline as failed", async () => {
    plane.engine.script = (_request, response) => response.writeHead(200, SSE).write("data: 1\n\n");
    const answer = await chat(STREAM);
    await plane.host.drain(0);
    expect(await answer.text()).toContain('data: 1\n\ndata: {"error":{"message":"Fairlead is shutting down');
    expect(plane.host.load.callsInFlight).toBe(0);
  });
});
