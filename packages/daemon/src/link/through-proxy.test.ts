import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TUNNEL_UPGRADE } from "@fairlead/protocol/daemon-link";
import { ConnectProxy } from "@fairlead/wire/proxy/connect-proxy.fixture";
import { ProxyRules } from "@fairlead/wire/proxy/proxy-rules";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { silentLog } from "../testing/silent-log.ts";
import { openTunnelSocket } from "../tunnel/tunnel-upgrade.ts";
import { download } from "../update/download.ts";
import { LinkRefused } from "./control-link.ts";
import { createHttpClient } from "./http-client.ts";
import { createTrpcLink } from "./trpc-link.ts";

/** All connections from the daemon to the platform host. */

const platformUrl = "http://platform.test:8123/below";
const signal = new AbortController().signal;
const seen: string[] = [];
let origin: Server;
let proxy: ConnectProxy;
let folder: string;
let proxies: ProxyRules;

beforeEach(async () => {
  seen.length = 0;
  folder = await mkdtemp(join(tmpdir(), "fairlead-through-proxy-"));
  origin = createServer((request, response) => {
    seen.push(request.url ?? "");
    response.end("content");
  });
  origin.on("upgrade", (request: IncomingMessage, socket) => {
    seen.push(request.url ?? "");
    socket.end(
      request.headers.upgrade === TUNNEL_UPGRADE
        ? `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${TUNNEL_UPGRADE}\r\n\r\n`
        : "HTTP/1.1 418 Teapot\r\nContent-Length: 0\r\n\r\n",
    );
  });
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
  const { port } = origin.address() as AddressInfo;
  proxy = await ConnectProxy.start({ credentials: "me:secret", route: () => `127.0.0.1:${port}` });
  proxies = new ProxyRules({ http: proxy.fullUrl });
});
afterEach(async () => {
  proxy.close();
  origin.closeAllConnections();
  origin.close();
  await rm(folder, { recursive: true, force: true });
});

const link = (rules: ProxyRules) =>
  createTrpcLink({
    platformUrl,
    nodeId: "nod_1",
    token: async () => "t",
    onTokenRefused: () => undefined,
    proxies: rules,
    log: silentLog,
  });

const WAYS: readonly [name: string, go: (rules: ProxyRules) => Promise<unknown>, path: string][] = [
  [
    "a call",
    (rules) => createHttpClient(rules)({ method: "GET", url: `${platformUrl}/call`, timeoutMs: 10_000 }),
    "/below/call",
  ],
  [
    "a download",
    (rules) => {
      const onBytes = async (): Promise<void> => undefined;
      const file = join(folder, "build");
      return download({ url: `${platformUrl}/build`, file, bytes: 7, signal, onBytes, proxies: rules });
    },
    "/below/build",
  ],
  [
    "the tunnel",
    async (rules) => {
      const opened = await openTunnelSocket({ platformUrl, nodeId: "nod_1", token: "t", signal, proxies: rules });
      opened.socket.destroy();
    },
    "/below/v1/nodes/nod_1/tunnel",
  ],
  [
    "the link",
    // The rejection proves that it arrived.
    (rules) =>
      link(rules)
        .connect(signal)
        .catch((error: unknown) => {
          if (!(error instanceof LinkRefused && error.status === 418)) throw error;
        }),
    "/below/v1/nodes/nod_1/link",
  ],
];

describe.each(WAYS)("through a proxy: %s", (_name, go, path) => {
  test("reaches a name that only the proxy can resolve, below the platform's own path", async () => {
    await go(proxies);
    expect(seen).toEqual([path]);
    expect(proxy.targets).toEqual(["platform.test:8123"]);
  });

  test("fails with the proxy's message, without its password", async () => {
    proxy.status = 407;
    const error: unknown = await Promise.resolve(go(proxies)).then(
      () => null,
      (cause: unknown) => cause,
    );
    expect(chainOf(error)).toContain(`the proxy ${proxy.url} requires a valid user and password (status 407)`);
    expect(chainOf(error)).not.toContain("secret");
    expect(seen).toEqual([]);
  });

  test("uses no proxy for an excluded host", async () => {
    const excluded = new ProxyRules({ http: proxy.fullUrl, noProxy: "platform.test" });
    await expect(go(excluded)).rejects.toThrow();
    expect([proxy.targets, proxy.refused]).toEqual([[], []]);
  });
});

test("a download through a proxy is complete", async () => {
  await WAYS[1]?.[1](proxies);
  expect(await readFile(join(folder, "build"), "utf8")).toBe("content");
});

function chainOf(error: unknown): string {
  return error instanceof Error ? `${error.message} | ${chainOf(error.cause)}` : "";
}
