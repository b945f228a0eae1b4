import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { WorkloadConnect } from "@fairlead/protocol/workload-connect";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type RawData, WebSocket, WebSocketServer } from "ws";
import { relayRequest } from "../support/relay-call.ts";
import { type Person, RelayStage, type StagedNode } from "../support/relay-stage.ts";
import { waitFor } from "../support/wait-for.ts";

const WAIT_MS = 60_000;
const MB = 1024 * 1024;

let stage: RelayStage;
let owner: Person;
let node: StagedNode;
let way: WorkloadConnect;
let server: WebSocketServer;
let handshakes: IncomingMessage[];
let clients: WebSocket[];
/** What the engine does with each WebSocket. */
let onSocket: (socket: WebSocket) => void;

beforeAll(async () => {
  stage = await RelayStage.start();
  owner = await stage.addPerson();
  node = await stage.addNode(owner, await stage.addProject(owner));
  way = await stage.connect(owner.token, node.id);
  const handleProtocols = (offered: Set<string>): string | false => (offered.has("chat.v1") ? "chat.v1" : false);
  server = new WebSocketServer({ noServer: true, handleProtocols, perMessageDeflate: true, maxPayload: 64 * MB });
  node.engine.server.on("upgrade", (request: IncomingMessage, socket: Socket, head) => {
    handshakes.push(request);
    if (request.url === "/refused")
      socket.end("HTTP/1.1 403 Forbidden\r\nx-engine: 1\r\nset-cookie: a=1\r\ncontent-length: 2\r\n\r\nno");
    else if (request.url === "/ignored") socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
    else if (request.url === "/broken") socket.destroy();
    else if (request.url === "/silent") socket.resume().on("end", () => socket.end());
    else server.handleUpgrade(request, socket, head, (accepted) => onSocket(accepted));
  });
});
afterAll(() => stage.stop());
beforeEach(() => {
  handshakes = [];
  clients = [];
  onSocket = (socket) => socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
});
afterEach(() => {
  for (const client of clients) client.terminate();
});

interface Opening {
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly protocols?: readonly string[];
}

function open({ path = "/", headers, protocols = [] }: Opening = {}): WebSocket {
  const authorization = { authorization: `Bearer ${way.authToken}` };
  const url = way.gatewayUrl.replace("http", "ws") + path;
  const client = new WebSocket(url, [...protocols], { headers: headers ?? authorization });
  client.on("error", () => undefined);
  clients.push(client);
  return client;
}

async function next(client: WebSocket): Promise<Buffer> {
  const [data] = (await once(client, "message")) as [RawData];
  return Buffer.from(data as Buffer);
}

/** What a handshake that was refused was told. */
async function refusalOf(
  client: WebSocket,
): Promise<{ status: number; headers: IncomingMessage["headers"]; text: string }> {
  const [, answer] = (await once(client, "unexpected-response")) as [unknown, IncomingMessage];
  const pieces: Buffer[] = await answer.toArray();
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: Buffer.concat(pieces).toString() };
}

describe("a WebSocket through the relay", () => {
  test("carries text, binary messages and pings in both directions, also compressed", async () => {
    const client = open({
      path: "/ws?room=1",
      headers: { authorization: `Bearer ${way.authToken}`, cookie: "a=1", origin: "http://x" },
    });
    await once(client, "open");
    client.send("héllo 🌍");
    expect((await next(client)).toString()).toBe("héllo 🌍");
    const bytes = Buffer.alloc(3 * MB, 7);
    client.send(bytes);
    expect((await next(client)).equals(bytes)).toBe(true);
    client.ping("ping");
    expect(String(await once(client, "pong"))).toBe("ping");
    expect(client.extensions).toContain("permessage-deflate");
    const [handshake] = handshakes;
    expect(handshake?.url).toBe("/ws?room=1");
    expect(handshake?.headers).toMatchObject({ origin: "http://x", "sec-websocket-version": "13" });
    for (const name of ["authorization", "cookie", "fairlead-token"])
      expect(handshake?.headers).not.toHaveProperty(name);
  });

  test("reports to each side how the other one closed it", async () => {
    const closedAtEngine = new Promise<number>((resolve) => {
      onSocket = (socket) => socket.on("close", (code) => resolve(code));
    });
    const leaving = open();
    await once(leaving, "open");
    leaving.close(4001, "bye");
    expect(await closedAtEngine).toBe(4001);
    onSocket = (socket) => socket.close(4002, "done");
    const left = open();
    expect((await once(left, "close"))[0]).toBe(4002);
  });

  test("closes when either side vanishes", async () => {
    const gone = new Promise<void>((resolve) => {
      onSocket = (socket) => socket.on("close", () => resolve());
    });
    const client = open();
    await once(client, "open");
    client.terminate();
    await gone;
    onSocket = (socket) => socket.terminate();
    expect((await once(open(), "close"))[0]).toBe(1006);
  });

  test("ends the engine's handshake when the caller leaves before the engine responds", async () => {
    const client = open({ path: "/silent" });
    await waitFor("the handshake", WAIT_MS, async () => handshakes.length === 1);
    const closed = once(handshakes[0]?.socket as Socket, "close");
    client.terminate();
    await closed;
  });

  test("slows both sides to the pace of the reader", async () => {
    let sent = 0;
    onSocket = (socket) => {
      const send = (): void => {
        sent += MB;
        if (sent < 64 * MB) socket.send(Buffer.alloc(MB), { compress: false }, send);
      };
      send();
    };
    const client = open({ headers: { authorization: `Bearer ${way.authToken}`, "sec-websocket-extensions": "" } });
    await once(client, "open");
    client.pause();
    let before = -1;
    await waitFor("the engine to stand still", WAIT_MS, async () => {
      const still = sent === before;
      before = sent;
      return still;
    });
    expect(sent).toBeLessThan(24 * MB);
  });
});

describe("the token of a WebSocket", () => {
  test("is sent as a subprotocol, which the engine does not see", async () => {
    const client = open({ headers: {}, protocols: [`fairlead.token.${way.authToken}`, "chat.v1", "chat.v2"] });
    await once(client, "open");
    expect(client.protocol).toBe("chat.v1");
    expect(handshakes[0]?.headers["sec-websocket-protocol"]).toBe("chat.v1, chat.v2");
  });

  test("is returned as the subprotocol if the engine accepts none, because browsers would otherwise fail", async () => {
    const token = `fairlead.token.${way.authToken}`;
    const client = open({ headers: {}, protocols: [token] });
    await once(client, "open");
    expect(client.protocol).toBe(token);
    expect(handshakes[0]?.headers).not.toHaveProperty("sec-websocket-protocol");
  });

  test.each<[string, Opening]>([
    ["is missing", { headers: {} }],
    ["is invented", { headers: {}, protocols: ["fairlead.token.x.y.z"] }],
    ["is in the query", { headers: {}, path: "/?token=" }],
    ["is in a cookie", { headers: { cookie: "token=" } }],
    ["is a session token", { headers: { authorization: "session" } }],
  ])("causes a 401 if it %s", async (_name, opening) => {
    const { headers = {}, path } = opening;
    const { authorization, cookie } = headers;
    const client = open({
      ...opening,
      headers: {
        ...(authorization === undefined ? {} : { authorization: `Bearer ${owner.token}` }),
        ...(cookie === undefined ? {} : { cookie: cookie + way.authToken }),
      },
      ...(path === undefined ? {} : { path: path + way.authToken }),
    });
    const { status, headers: told, text } = await refusalOf(client);
    expect([status, told["www-authenticate"]]).toEqual([401, "Bearer"]);
    expect(JSON.parse(text)).toMatchObject({ error: { code: "invalid_credential" } });
    expect(handshakes).toEqual([]);
  });
});

describe("a handshake that fails", () => {
  test("returns the engine's refusal by the same rules as any response", async () => {
    const { status, headers, text } = await refusalOf(open({ path: "/refused" }));
    expect([status, text, headers["x-engine"]]).toEqual([403, "no", "1"]);
    expect(headers).not.toHaveProperty("set-cookie");
    expect(headers["content-security-policy"]).toBe("sandbox");
  });

  test.each(["/ignored", "/broken"])("at %s returns 502", async (path) => {
    const { status, text } = await refusalOf(open({ path }));
    expect(status).toBe(502);
    expect(JSON.parse(text)).toMatchObject({ error: { code: "upstream_failed" } });
  });

  test("returns 400 if it violates RFC 6455", async () => {
    const headers = {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-key": "short",
      "sec-websocket-version": "13",
    };
    const [answer] = (await once(relayRequest(way, { headers }).end(), "response")) as [IncomingMessage];
    expect(answer.statusCode).toBe(400);
    expect(handshakes).toEqual([]);
  });
});
