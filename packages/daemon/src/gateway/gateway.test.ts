import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
  createServer as createHttp2Server,
  type Http2Server,
  type IncomingHttpHeaders,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { TUNNEL_FAULT_HEADER, TUNNEL_TOKEN_HEADER, TUNNEL_WORKLOAD_HEADER } from "@fairlead/protocol/daemon-link";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { h2Calls } from "../tunnel/h2-call.ts";
import type { Refusal } from "./connect-check.ts";
import { EngineConnections } from "./engine-connections.ts";
import { createGateway, type WorkloadTarget } from "./gateway.ts";

type Script = (request: IncomingMessage, response: ServerResponse) => unknown;

let engine: Server;
let script: Script;
let gateway: Http2Server;
let caller: ClientHttp2Session;
let targets: Map<string, WorkloadTarget>;
let engineSockets: number;
let verdict: (token: string) => Refusal;

beforeEach(async () => {
  engineSockets = 0;
  verdict = () => null;
  engine = createServer((request, response) => script(request, response));
  engine.on("connection", () => engineSockets++);
  await new Promise<void>((resolve) => engine.listen(0, "127.0.0.1", resolve));
  const { port } = engine.address() as AddressInfo;
  targets = new Map([
    ["engine", { host: "127.0.0.1", port, ready: true }],
    ["starting", { host: "127.0.0.1", port, ready: false }],
  ]);
  gateway = createHttp2Server();
  const connect = { check: (token: string) => Promise.resolve(verdict(token)) };
  const find = (name: string): WorkloadTarget | null => targets.get(name) ?? null;
  const connections = new EngineConnections({ trialMs: 50 });
  gateway.on(
    "stream",
    h2Calls(createGateway({ targets: { find }, connect, connections, log: pino({ level: "silent" }) })),
  );
  await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
  caller = connectHttp2(`http://127.0.0.1:${(gateway.address() as AddressInfo).port}`);
});

afterEach(() => {
  caller.destroy();
  gateway.close();
  engine.closeAllConnections();
  engine.close();
});

function ask(headers: Record<string, string> = {}, options: { endStream?: boolean } = {}): ClientHttp2Stream {
  const stream = caller.request(
    { ":method": "GET", ":path": "/", [TUNNEL_WORKLOAD_HEADER]: "engine", ...headers },
    options,
  );
  stream.on("error", () => undefined);
  return stream;
}

async function headersOf(stream: ClientHttp2Stream): Promise<IncomingHttpHeaders & { ":status"?: number }> {
  const [headers] = (await once(stream, "response")) as [IncomingHttpHeaders];
  return headers;
}

describe("the gateway", () => {
  test("forwards method, path, headers and body, and brings the answer back", async () => {
    let seen: IncomingMessage | undefined;
    let body = "";
    script = async (request, response) => {
      seen = request;
      body = await text(request);
      response.writeHead(201, { "x-engine": "yes", connection: "x-private", "x-private": "1" }).end("done");
    };
    const stream = ask({ ":method": "POST", ":path": "/v1/x?y=1", "content-type": "text/plain", te: "trailers" });
    stream.end("hello");
    const headers = await headersOf(stream);
    expect(await text(stream)).toBe("done");
    expect(headers).toMatchObject({ ":status": 201, "x-engine": "yes" });
    expect(headers).not.toHaveProperty("x-private");
    expect(body).toBe("hello");
    expect(seen).toMatchObject({ method: "POST", url: "/v1/x?y=1", headers: { "content-type": "text/plain" } });
    expect(seen?.headers.host).toMatch(/^127\.0\.0\.1:/);
    expect(seen?.headers).not.toHaveProperty("te");
    expect(seen?.headers).not.toHaveProperty(TUNNEL_WORKLOAD_HEADER);
  });

  test("uses a connection of an engine that it does not know yet only once", async () => {
    script = (_request, response) => response.end("ok");
    for (let i = 0; i < 3; i++) expect(await text(ask())).toBe("ok");
    expect(engineSockets).toBe(3);
  });

  test("uses connections again of an engine that keeps them, also after callers left or bodies were refused", async () => {
    script = (request, response) => {
      if (request.url === "/hang") return;
      if (request.url === "/refused") response.writeHead(413).end("no");
      else request.resume().on("end", () => response.end("ok"));
    };
    await vi.waitFor(
      async () => {
        const before = engineSockets;
        for (let i = 0; i < 3; i++) expect(await text(ask())).toBe("ok");
        expect(engineSockets).toBeLessThanOrEqual(before + 1);
      },
      { timeout: 10_000, interval: 20 },
    );
    for (let round = 0; round < 20; round++) {
      const hung = ask({ ":path": "/hang" });
      const refused = ask({ ":method": "POST", ":path": "/refused" }, { endStream: false });
      refused.write(Buffer.alloc(16 * 1024));
      expect(await text(refused)).toBe("no");
      const posted = ask({ ":method": "POST" }, { endStream: false });
      posted.end("body");
      hung.close(constants.NGHTTP2_CANCEL);
      expect(await Promise.all([text(ask()), text(posted)])).toEqual(["ok", "ok"]);
    }
  });

  test.each(["unknown", "starting", ""])(
    "answers for a workload that does not run (%j) itself, and says so",
    async (name) => {
      const stream = ask({ [TUNNEL_WORKLOAD_HEADER]: name });
      expect(await headersOf(stream)).toMatchObject({ ":status": 503, [TUNNEL_FAULT_HEADER]: "no_running_engine" });
      expect(engineSockets).toBe(0);
    },
  );

  test("tells an engine that does not listen from one that breaks off", async () => {
    script = (request) => request.socket.destroy();
    expect(await headersOf(ask())).toMatchObject({ ":status": 502, [TUNNEL_FAULT_HEADER]: "upstream_failed" });
    engine.close();
    engine.closeAllConnections();
    expect(await headersOf(ask())).toMatchObject({ ":status": 503, [TUNNEL_FAULT_HEADER]: "no_running_engine" });
  });

  test("lets no engine speak in its name", async () => {
    script = (_request, response) => response.writeHead(200, { [TUNNEL_FAULT_HEADER]: "no_running_engine" }).end();
    expect(await headersOf(ask())).not.toHaveProperty(TUNNEL_FAULT_HEADER);
  });

  test("survives a request that Node refuses to send", async () => {
    targets.set("broken", { host: "127.0.0.1", port: 70_000, ready: true });
    expect(await headersOf(ask({ [TUNNEL_WORKLOAD_HEADER]: "broken" }))).toMatchObject({
      ":status": 502,
      [TUNNEL_FAULT_HEADER]: "upstream_failed",
    });
  });

  test("delivers what a breaking engine said, then resets the stream, and never ends it", async () => {
    script = (_request, response) => {
      response.writeHead(200).write("half", () => response.destroy());
    };
    const stream = ask();
    let received = "";
    let ended = false;
    stream.on("data", (chunk: Buffer) => {
      received += chunk.toString();
    });
    stream.on("end", () => {
      ended = true;
    });
    await once(stream, "close").catch(() => undefined);
    expect(received).toBe("half");
    expect(ended).toBe(false);
    expect(stream.rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR);
  });

  test("ends the engine's work when the caller leaves, before and after the headers", async () => {
    const closed: number[] = [];
    let asked = 0;
    script = (request, response) => {
      const id = ++asked;
      response.on("close", () => closed.push(id));
      if (request.url === "/begun") response.writeHead(200).write("x");
    };
    const silent = ask({ ":path": "/silent" });
    await vi.waitFor(() => expect(asked).toBe(1));
    silent.close(constants.NGHTTP2_CANCEL);
    await vi.waitFor(() => expect(closed).toEqual([1]));
    const begun = ask({ ":path": "/begun" });
    await headersOf(begun);
    begun.close(constants.NGHTTP2_CANCEL);
    await vi.waitFor(() => expect(closed).toEqual([1, 2]));
  });

  test("does not let a body that was cut off look whole to the engine", async () => {
    const outcome: string[] = [];
    script = (request) => {
      request.on("data", () => outcome.push("data"));
      request.on("end", () => outcome.push("end"));
      request.on("error", () => outcome.push("error"));
    };
    const stream = ask({ ":method": "POST" }, { endStream: false });
    stream.write("half");
    await vi.waitFor(() => expect(outcome).toEqual(["data"]));
    stream.destroy(new Error("gone"));
    await vi.waitFor(() => expect(outcome).toEqual(["data", "error"]));
  });

  test("passes an answer on that comes before the whole body was taken", async () => {
    script = (_request, response) => response.writeHead(400, { connection: "close" }).end("no");
    const stream = ask({ ":method": "POST" }, { endStream: false });
    stream.write(Buffer.alloc(16 * 1024));
    expect(await headersOf(stream)).toMatchObject({ ":status": 400 });
    expect(await text(stream)).toBe("no");
  });

  test("holds both directions to the pace of the reader", async () => {
    const size = 32 * 1024 * 1024;
    script = (request, response) => request.pipe(response);
    const stream = ask({ ":method": "POST" }, { endStream: false });
    const sent = new Promise<void>((resolve) => {
      let left = size;
      const write = (): void => {
        while (left > 0) {
          left -= 64 * 1024;
          if (!stream.write(Buffer.alloc(64 * 1024, 1))) return;
        }
        stream.end();
        resolve();
      };
      stream.on("drain", write);
      write();
    });
    const received = await buffer(stream);
    await sent;
    expect(received.length).toBe(size);
  });
});

describe("a relayed request", () => {
  test("is forwarded by a token that opens the workload, which the workload does not see", async () => {
    let seen: IncomingMessage | undefined;
    script = (request, response) => {
      seen = request;
      response.end("ok");
    };
    expect(await text(ask({ [TUNNEL_TOKEN_HEADER]: "good" }))).toBe("ok");
    expect(seen?.headers).not.toHaveProperty(TUNNEL_TOKEN_HEADER);
  });

  test.each<[Refusal & string, number]>([
    ["invalid_credential", 401],
    ["expired_credential", 401],
    ["unavailable", 503],
  ])("that is refused (%s) never reaches the workload, an empty token included", async (refusal, status) => {
    verdict = () => refusal;
    for (const token of ["bad", ""]) {
      const answer = await headersOf(ask({ [TUNNEL_TOKEN_HEADER]: token }));
      expect(answer).toMatchObject({ ":status": status, [TUNNEL_FAULT_HEADER]: refusal });
    }
    expect(engineSockets).toBe(0);
  });

  test("whose caller left while its token was judged ends quietly", async () => {
    const judged = Promise.withResolvers<void>();
    verdict = () => {
      judged.resolve();
      return null;
    };
    const stream = ask({ [TUNNEL_TOKEN_HEADER]: "good", ":method": "POST" }, { endStream: false });
    await judged.promise;
    stream.close(constants.NGHTTP2_CANCEL);
    script = (_request, response) => response.end("ok");
    expect(await text(ask())).toBe("ok");
  });

  test("with a body of unknown length is framed, whatever its method", async () => {
    let body = "";
    script = async (request, response) => {
      body = await text(request);
      response.end(request.headers["transfer-encoding"]);
    };
    const stream = ask({ ":method": "DELETE" }, { endStream: false });
    stream.end("GET /smuggled HTTP/1.1\r\n\r\n");
    expect(await text(stream)).toBe("chunked");
    expect(body).toBe("GET /smuggled HTTP/1.1\r\n\r\n");
  });
});
