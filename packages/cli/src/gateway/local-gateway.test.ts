import { once } from "node:events";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import type { WorkloadConnect } from "@fairlead/protocol/workload-connect";
import { ConnectProxy } from "@fairlead/wire/proxy/connect-proxy.fixture";
import { NO_PROXIES, ProxyRules } from "@fairlead/wire/proxy/proxy-rules";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type LocalGateway, openLocalGateway } from "./local-gateway.ts";

/** Simulates the platform's relay and the engine behind it. */
let relay: Server;
let script: (request: IncomingMessage, response: ServerResponse) => unknown;
let seen: IncomingMessage[];
let forgotten: WorkloadConnect[];
let way: WorkloadConnect;
let refuses: Error | null;
let gateway: LocalGateway;
const upgraded = new Set<Socket>();

beforeEach(async () => {
  [seen, forgotten, refuses] = [[], [], null];
  script = (_request, response) => response.end("engine");
  relay = createServer((request, response) => {
    seen.push(request);
    script(request, response);
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  const { port } = relay.address() as AddressInfo;
  way = { gatewayUrl: `http://127.0.0.1:${port}/v1/nodes/nod_1/gateway`, authToken: "the-token" };
  gateway = await openLocalGateway({
    port: 0,
    proxies: NO_PROXIES,
    way: {
      current: async () => {
        if (refuses !== null) throw refuses;
        return way;
      },
      forget: (spent) => void forgotten.push(spent),
    },
  });
});
afterEach(() => {
  gateway.close();
  for (const socket of upgraded) socket.destroy();
  relay.closeAllConnections();
  relay.close();
});

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

async function ask(
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: Buffer } = {},
): Promise<Answer> {
  const { method = "GET", headers = {}, body } = options;
  const call = httpRequest({ host: "127.0.0.1", port: gateway.port, path, method, headers, agent: false });
  call.end(body);
  const [answer] = (await once(call, "response")) as [IncomingMessage];
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: await text(answer) };
}

describe("the local forwarder", () => {
  test("adds the token and the gateway's address, and leaves the path and body unchanged", async () => {
    let body = "";
    script = async (request, response) => {
      body = await text(request);
      response.writeHead(201, { "x-engine": "1" }).end("made");
    };
    const headers = { authorization: "Bearer of-the-engine", "content-type": "text/x" };
    const answer = await ask("/a/..//b?c=%2F", { method: "PATCH", headers, body: Buffer.from("hello") });
    expect(answer).toMatchObject({ status: 201, text: "made", headers: { "x-engine": "1" } });
    expect(body).toBe("hello");
    expect(seen[0]).toMatchObject({
      method: "PATCH",
      url: "/v1/nodes/nod_1/gateway/a/..//b?c=%2F",
      headers: { authorization: "Bearer the-token", "content-type": "text/x", host: new URL(way.gatewayUrl).host },
    });
  });

  test.each([
    ["sandbox", undefined],
    ["default-src 'self', sandbox", "default-src 'self'"],
    ["sandbox allow-scripts, sandbox", "sandbox allow-scripts"],
  ])("removes the platform's sandbox (%s) from pages, which have their own origin here", async (policy, left) => {
    script = (_request, response) => response.writeHead(200, { "content-security-policy": policy }).end();
    expect((await ask("/")).headers["content-security-policy"]).toBe(left);
  });

  test("streams responses, and closes the upstream request when the client disconnects", async () => {
    let closed = false;
    script = (_request, response) => {
      response.on("close", () => {
        closed = true;
      });
      response.writeHead(200).write("one");
    };
    const call = httpRequest({ host: "127.0.0.1", port: gateway.port, agent: false }).end();
    call.on("error", () => undefined);
    const [answer] = (await once(call, "response")) as [IncomingMessage];
    answer.on("error", () => undefined);
    expect(String(await once(answer, "data"))).toBe("one");
    call.destroy();
    await expect.poll(() => closed).toBe(true);
  });

  test("carries WebSockets", async () => {
    relay.on("upgrade", (request: IncomingMessage, socket: Socket) => {
      seen.push(request);
      upgraded.add(socket);
      socket.write(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n",
      );
      socket.pipe(socket);
    });
    const socket = connect(gateway.port, "127.0.0.1");
    upgraded.add(socket);
    socket.write(
      "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n",
    );
    expect(String(await once(socket, "data"))).toMatch(/^HTTP\/1\.1 101 .*Sec-WebSocket-Accept: x\r\n/s);
    socket.write("frame");
    expect(String(await once(socket, "data"))).toBe("frame");
    expect(seen[0]).toMatchObject({
      url: "/v1/nodes/nod_1/gateway/ws",
      headers: { authorization: "Bearer the-token" },
    });
  });

  test("rejects pages of other origins without calling the platform, also for WebSockets", async () => {
    expect((await ask("/", { headers: { origin: "https://evil.example" } })).status).toBe(403);
    const socket = connect(gateway.port, "127.0.0.1");
    upgraded.add(socket);
    socket.write(
      "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    expect(String(await once(socket, "data"))).toMatch(/^HTTP\/1\.1 403 /);
    expect(seen).toEqual([]);
  });

  test("says why when it has no token or cannot reach the relay", async () => {
    refuses = new Error("Run `fairlead login`.");
    expect(await ask("/")).toMatchObject({ status: 502, text: "Run `fairlead login`.\n" });
    refuses = null;
    relay.close();
    relay.closeAllConnections();
    expect(await ask("/")).toMatchObject({
      status: 502,
      text: expect.stringContaining("Cannot reach the platform's relay"),
    });
  });

  test("discards the token when the relay rejects it, but not when the engine rejects the request", async () => {
    script = (_request, response) => response.writeHead(401, { "www-authenticate": "Bearer" }).end();
    expect((await ask("/")).status).toBe(401);
    expect(forgotten).toEqual([way]);
    script = (_request, response) => response.writeHead(401).end();
    expect((await ask("/")).status).toBe(401);
    expect(forgotten).toEqual([way]);
  });

  test("reports a port that is in use", async () => {
    const current = async (): Promise<WorkloadConnect> => way;
    const taken = { port: gateway.port, way: { current, forget: () => undefined }, proxies: NO_PROXIES };
    await expect(openLocalGateway(taken)).rejects.toThrow(`Cannot listen on local port ${gateway.port}`);
  });

  test("reaches the relay through a proxy, and says why when it cannot", async () => {
    const { host } = new URL(way.gatewayUrl);
    const proxy = await ConnectProxy.start({ credentials: "me:secret", route: () => host });
    gateway.close();
    way = { ...way, gatewayUrl: "http://platform.test/v1/nodes/nod_1/gateway" };
    const ways = { current: async () => way, forget: () => undefined };
    gateway = await openLocalGateway({ port: 0, way: ways, proxies: new ProxyRules({ http: proxy.fullUrl }) });
    expect(await ask("/path")).toMatchObject({ status: 200, text: "engine" });
    expect(proxy.targets).toEqual(["platform.test:80"]);
    expect(seen[0]).toMatchObject({ url: "/v1/nodes/nod_1/gateway/path", headers: { host: "platform.test" } });
    proxy.status = 407;
    const refused = await ask("/path");
    expect(refused).toMatchObject({ status: 502, text: expect.stringContaining("requires a valid user and password") });
    expect(refused.text).not.toContain("secret");
    proxy.close();
  });
});
