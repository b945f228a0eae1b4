import { once } from "node:events";
import { createServer, get as httpGet, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ConnectProxy } from "./connect-proxy.fixture.ts";
import { connectionVia, connectThroughProxy, ProxyFailed } from "./proxy-connect.ts";
import { ProxyRules, type ProxyServer } from "./proxy-rules.ts";

let origin: Server;
let port: number;
let proxy: ConnectProxy;

beforeEach(async () => {
  origin = createServer((request, response) => response.end(`${request.headers.host} ${request.url}`));
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
  port = (origin.address() as AddressInfo).port;
  proxy = await ConnectProxy.start({ credentials: "me:p%ss", route: () => `127.0.0.1:${port}` });
});
afterEach(() => {
  proxy.close();
  origin.closeAllConnections();
  origin.close();
});

const serverOf = (url: string): ProxyServer => new ProxyRules({ http: url }).http as ProxyServer;
const trusted = (): ProxyServer => serverOf(proxy.url.replace("//", "//me:p%25ss@"));

async function ask(url: string, server: ProxyServer): Promise<string> {
  const call = httpGet(url, connectionVia(server, new URL(url)));
  const [response] = (await once(call, "response")) as [IncomingMessage];
  return text(response);
}

test("a request is sent through CONNECT with user and password, to a name that the proxy resolves", async () => {
  expect(await ask("http://only-the-proxy-knows.test:8123/path?q", trusted())).toBe(
    "only-the-proxy-knows.test:8123 /path?q",
  );
  expect(proxy.targets).toEqual(["only-the-proxy-knows.test:8123"]);
});

test("an IPv6 address is sent in brackets", async () => {
  expect(await ask("http://[2001:db8::7]/", trusted())).toBe("[2001:db8::7] /");
  expect(proxy.targets).toEqual(["[2001:db8::7]:80"]);
});

test.each([
  [407, "requires a valid user and password (status 407)"],
  [401, "requires a valid user and password (status 401)"],
  [403, "did not connect to far.test:443 (status 403)"],
  [302, "did not connect to far.test:443 (status 302)"],
])("status %s fails with the proxy's address but not its password", async (status, words) => {
  proxy.status = status;
  const error = await connectThroughProxy({ proxy: trusted(), host: "far.test", port: 443 }).catch((cause) => cause);
  expect(error).toBeInstanceOf(ProxyFailed);
  expect(error).toMatchObject({ status, message: `the proxy ${proxy.url} ${words}` });
});

test("a proxy that is unreachable, silent or closes the connection is an error", async () => {
  const gone = { proxy: serverOf("http://127.0.0.1:1"), host: "far.test", port: 443 };
  await expect(connectThroughProxy(gone)).rejects.toThrow(/proxy http:\/\/127\.0\.0\.1:1 cannot be reached: .*REFUSED/);
  const silent = createTcpServer((socket) => socket.on("error", () => undefined));
  const closing = createTcpServer((socket) => socket.end("HTTP/1.1 2"));
  for (const [server, words] of [
    [silent, "no answer within 50 ms"],
    [closing, "cannot be reached"],
  ] as const) {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const at = serverOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    await expect(connectThroughProxy({ proxy: at, host: "far.test", port: 443, timeoutMs: 50 })).rejects.toThrow(words);
    server.close();
  }
});

test("an endless header is rejected at Node's limit", async () => {
  const endless = createTcpServer((socket) => {
    socket.on("error", () => undefined);
    socket.write(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(200_000)}`);
  });
  endless.listen(0, "127.0.0.1");
  await once(endless, "listening");
  const at = serverOf(`http://127.0.0.1:${(endless.address() as AddressInfo).port}`);
  await expect(connectThroughProxy({ proxy: at, host: "far.test", port: 443 })).rejects.toThrow(/overflow/i);
  endless.close();
});

test("a failed CONNECT is the request's error, and without a proxy no option is set", async () => {
  proxy.status = 502;
  const call = httpGet("http://far.test/", connectionVia(trusted(), new URL("http://far.test/")));
  const [error] = (await once(call, "error")) as [Error];
  expect(error).toBeInstanceOf(ProxyFailed);
  expect(connectionVia(null, new URL("http://far.test/"))).toEqual({});
});
