import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createSecureServer } from "node:http2";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { systemClock } from "@fairlead/protocol/values/clock";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { GuardedConnectOptions } from "./guarded-connect.ts";
import { ask, REQUEST, targetAt } from "./http-upstream.fixture.ts";
import { HttpUpstreams, type HttpUpstreamsOptions } from "./http-upstreams.ts";
import { type FarEnd, type UpstreamFixture, upstreamContract } from "./upstream.contract.ts";
import type { UpstreamTransport } from "./upstream.ts";

interface Provider {
  readonly server: Server;
  readonly port: number;
  /** Sockets that were ever opened to it. */
  readonly sockets: Set<Socket>;
  next(): Promise<readonly [IncomingMessage, ServerResponse]>;
  close(): void;
}

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function startProvider(host = "127.0.0.1"): Promise<Provider> {
  const server = createServer();
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  closers.push(close);
  return {
    server,
    port: (server.address() as AddressInfo).port,
    sockets,
    next: async () => (await once(server, "request")) as [IncomingMessage, ServerResponse],
    close,
  };
}

function openUpstreams(options: Partial<HttpUpstreamsOptions> = {}): HttpUpstreams {
  const upstreams = new HttpUpstreams({ clock: systemClock, ...options });
  closers.push(() => upstreams.close());
  return upstreams;
}

/** For 127.0.0.1, and its own authority. */
function certificateOfItsOwn(): { readonly key: string; readonly cert: string } {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const folder = mkdtempSync(join(tmpdir(), "fairlead-"));
  closers.push(() => rmSync(folder, { recursive: true }));
  const keyFile = join(folder, "key.pem");
  writeFileSync(keyFile, key);
  const whose = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
  const cert = execFileSync("openssl", ["req", "-x509", "-days", "1", "-key", keyFile, ...whose], { encoding: "utf8" });
  return { key, cert };
}

upstreamContract("a provider over HTTP", async (): Promise<UpstreamFixture> => {
  const provider = await startProvider();
  const upstreams = openUpstreams();
  return {
    upstream: upstreams.open(targetAt(provider.port)),
    nextCall: async () => farEnd(await provider.next()),
    close: async () => {
      await upstreams.close();
      provider.close();
    },
  };
});

function farEnd([request, response]: readonly [IncomingMessage, ServerResponse]): FarEnd {
  const { url = "", headers, socket } = request;
  return {
    request: buffer(request).then((body) => ({ path: url, headers, body })),
    respond: (status, answer) => {
      response.writeHead(status, answer);
      response.flushHeaders();
    },
    write: (text) => void response.write(text),
    end: () => void response.end(),
    cut: () => void socket.destroy(),
    get closed() {
      return socket.destroyed;
    },
  };
}

describe("a provider over HTTP", () => {
  test("is called with its own credential, base path and query, whatever the headers of the request", async () => {
    const provider = await startProvider();
    const baseUrl = `http://127.0.0.1:${provider.port}/openai/v1?api-version=7`;
    const upstream = openUpstreams().open(targetAt(provider.port, { baseUrl }));
    const answer = ask(upstream, { ...REQUEST, headers: { ...REQUEST.headers, authorization: "Bearer ours" } });
    const [request, response] = await provider.next();
    expect(request.url).toBe("/openai/v1/chat/completions?api-version=7");
    expect(request.headers).toMatchObject({ authorization: "Bearer theirs", host: `127.0.0.1:${provider.port}` });
    expect(request.httpVersion).toBe("1.1");
    response.end("ok");
    expect((await answer).text).toBe("ok");
  });

  test("receives large bodies in the pieces in which they arrived", async () => {
    const provider = await startProvider();
    const body = Array.from({ length: 100 }, (_, at) => Buffer.alloc(65_536, at));
    const headers = { ...REQUEST.headers, "content-length": String(100 * 65_536) };
    const answer = ask(openUpstreams().open(targetAt(provider.port)), { ...REQUEST, headers, body });
    const [request, response] = await provider.next();
    expect((await buffer(request)).equals(Buffer.concat(body))).toBe(true);
    response.end();
    expect((await answer).status).toBe(200);
  });

  test("does not have its redirects followed", async () => {
    const provider = await startProvider();
    const answer = ask(openUpstreams().open(targetAt(provider.port)));
    const [, response] = await provider.next();
    response.writeHead(307, { location: "http://169.254.169.254/" }).end();
    expect(await answer).toMatchObject({ status: 307 });
  });

  test("can send informational responses first", async () => {
    const provider = await startProvider();
    const answer = ask(openUpstreams().open(targetAt(provider.port)));
    const [, response] = await provider.next();
    response.writeProcessing();
    response.writeEarlyHints({ link: "</a>; rel=preload" });
    response.end("ok");
    expect(await answer).toMatchObject({ status: 200, text: "ok" });
  });

  // apache/maka#1658: in one HTTP/2 session whole answers waited for each other.
  test("is called over HTTP/1.1 even if it supports HTTP/2", async () => {
    const { key, cert } = certificateOfItsOwn();
    const server = createSecureServer({ key, cert, allowHTTP1: true }, (request, response) => {
      response.end(request.httpVersion);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closers.push(() => server.close());
    const { port } = server.address() as AddressInfo;
    const upstream = openUpstreams({ authorities: [cert] }).open(
      targetAt(port, { baseUrl: `https://127.0.0.1:${port}/v1` }),
    );
    expect(await ask(upstream)).toMatchObject({ status: 200, text: "1.1" });
  });

  // kortix-ai/suna#3696: a time-out of the runtime's own cut those that think for long.
  test("can be silent before and during its response for as long as its caller waits", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
    closers.push(() => vi.useRealTimers());
    const provider = await startProvider();
    const answer = ask(openUpstreams().open(targetAt(provider.port)));
    const [, response] = await provider.next();
    vi.advanceTimersByTime(20 * 60_000);
    response.write("a");
    vi.advanceTimersByTime(20 * 60_000);
    response.end("b");
    expect(await answer).toMatchObject({ status: 200, text: "ab" });
  });

  test("is reported without its address if it is unreachable", async () => {
    const provider = await startProvider();
    provider.close();
    const { error } = await ask(openUpstreams().open(targetAt(provider.port)));
    expect(error?.code).toBe("upstream_failed");
    expect(error?.message).not.toContain("127.0.0.1");
  });

  test("fails if it does not accept the connection in time", async () => {
    const full = createTcpServer();
    await new Promise<void>((resolve) => full.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, resolve));
    closers.push(() => full.close());
    const never: GuardedConnectOptions["lookup"] = (() => undefined) as never;
    const target = targetAt(0, { baseUrl: "http://provider.example/v1", connectMs: 20 });
    const { error } = await ask(openUpstreams({ lookup: never }).open(target));
    expect(error?.code).toBe("upstream_failed");
    expect(error?.cause).toMatchObject({ code: "UND_ERR_CONNECT_TIMEOUT" });
  });

  test("gets no request from a call that was aborted before connecting", async () => {
    const provider = await startProvider();
    let requests = 0;
    provider.server.on("request", () => requests++);
    const upstream = openUpstreams().open(targetAt(provider.port));
    upstream
      .dispatch(REQUEST, {
        onHeaders: () => undefined,
        onData: () => true,
        onEnd: () => undefined,
        onError: () => undefined,
      })
      .abort();
    const answer = ask(upstream);
    const [, response] = await provider.next();
    response.end();
    await answer;
    expect(requests).toBe(1);
  });

  test("gets no request with a header that would split it", async () => {
    const provider = await startProvider();
    const headers = { authorization: "Bearer a\r\nx-evil: 1" };
    const { error } = await ask(openUpstreams().open(targetAt(provider.port, { headers })));
    expect(error?.code).toBe("upstream_failed");
    expect(provider.sockets.size).toBe(0);
  });
});

describe("a provider's address", () => {
  type Found = readonly { readonly address: string; readonly family: number }[];
  /** Answers with the next of these for every look-up. */
  function resolving(...answers: readonly Found[]): NonNullable<GuardedConnectOptions["lookup"]> {
    let at = 0;
    const lookup = (
      _host: string,
      options: { readonly all?: boolean },
      callback: (...args: unknown[]) => void,
    ): void => {
      const found = answers[Math.min(at++, answers.length - 1)] ?? [];
      setImmediate(() => (options.all ? callback(null, found) : callback(null, found[0]?.address, found[0]?.family)));
    };
    return lookup as unknown as NonNullable<GuardedConnectOptions["lookup"]>;
  }
  const v4 = (address: string): { address: string; family: number } => ({ address, family: 4 });

  test.each([
    ["private", [v4("127.0.0.1")]],
    ["private, next to a public one", [v4("93.184.216.34"), v4("127.0.0.1")]],
    ["an IPv4-mapped private one", [{ address: "::ffff:127.0.0.1", family: 6 }]],
    ["missing", []],
  ])("is not connected to if it is %s", async (_name, found) => {
    const provider = await startProvider();
    const baseUrl = `http://provider.example:${provider.port}/v1`;
    const target = targetAt(provider.port, { baseUrl, allowPrivate: false });
    const { error } = await ask(openUpstreams({ lookup: resolving(found) }).open(target));
    expect(error).toMatchObject({ code: "upstream_failed", cause: { name: "PrivateAddressError" } });
    expect(provider.sockets.size).toBe(0);
  });

  test.each(["127.0.0.1", "[::ffff:127.0.0.1]", "[::1]", "2130706433", "0x7f.1", "127.1", "localhost"])(
    "is not connected to if it is written as %s",
    async (host) => {
      const provider = await startProvider();
      const target = targetAt(provider.port, { baseUrl: `http://${host}:${provider.port}/v1`, allowPrivate: false });
      const { error } = await ask(openUpstreams().open(target));
      expect(error).toMatchObject({ code: "upstream_failed", cause: { name: "PrivateAddressError" } });
      expect(provider.sockets.size).toBe(0);
    },
  );

  test("is checked for every connection, so that a name cannot become private later", async () => {
    const provider = await startProvider();
    const baseUrl = `http://provider.example:${provider.port}/v1`;
    // Nothing answers at the public address within the time; the second look-up names this machine.
    const lookup = resolving([v4("192.88.98.1")], [v4("127.0.0.1")]);
    const upstream = openUpstreams({ lookup }).open(
      targetAt(provider.port, { baseUrl, allowPrivate: false, connectMs: 20 }),
    );
    await ask(upstream);
    expect(await ask(upstream)).toMatchObject({ error: { cause: { name: "PrivateAddressError" } } });
    expect(provider.sockets.size).toBe(0);
  });

  test("can be private if the platform allows it", async () => {
    const provider = await startProvider();
    const baseUrl = `http://provider.example:${provider.port}/v1`;
    const answer = ask(
      openUpstreams({ lookup: resolving([v4("127.0.0.1")]) }).open(targetAt(provider.port, { baseUrl })),
    );
    const [, response] = await provider.next();
    response.end("ok");
    expect((await answer).text).toBe("ok");
  });
});

describe("connections to a provider", () => {
  async function answered(provider: Provider, upstream: UpstreamTransport): Promise<void> {
    const answer = ask(upstream);
    const [, response] = await provider.next();
    response.end("ok");
    await answer;
    // A connection is free again once the end of its answer was told.
    await new Promise(setImmediate);
  }

  test("are reused, even after the credential changes", async () => {
    const provider = await startProvider();
    const upstreams = openUpstreams();
    await answered(provider, upstreams.open(targetAt(provider.port)));
    await answered(provider, upstreams.open(targetAt(provider.port, { headers: { authorization: "Bearer new" } })));
    expect(provider.sockets.size).toBe(1);
  });

  test("close when the provider's address changes, after running calls finish", async () => {
    const [old, other] = [await startProvider(), await startProvider()];
    const upstreams = openUpstreams();
    await answered(old, upstreams.open(targetAt(old.port)));
    const running = ask(upstreams.open(targetAt(old.port)));
    const [, response] = await old.next();
    response.write("o");
    await answered(other, upstreams.open(targetAt(other.port)));
    response.end("k");
    expect((await running).text).toBe("ok");
    await vi.waitFor(() => expect([...old.sockets].every((socket) => socket.destroyed)).toBe(true));
  });

  test("are replaced after five minutes, so that DNS changes take effect", async () => {
    const clock = new TestClock();
    const provider = await startProvider();
    const upstreams = openUpstreams({ clock });
    const upstream = upstreams.open(targetAt(provider.port));
    await answered(provider, upstream);
    // Node keeps an idle connection for five seconds.
    for (let passed = 0; passed < 299_999; passed += 3999) {
      await answered(provider, upstream);
      clock.advance(Math.min(3999, 299_999 - passed));
    }
    await answered(provider, upstream);
    expect(provider.sockets.size).toBe(1);
    clock.advance(1);
    await answered(provider, upstream);
    expect(provider.sockets.size).toBe(2);
  });

  test("close when the provider is deleted", async () => {
    const provider = await startProvider();
    const upstreams = openUpstreams();
    await answered(provider, upstreams.open(targetAt(provider.port)));
    upstreams.forget("prv_1");
    await vi.waitFor(() => expect([...provider.sockets].every((socket) => socket.destroyed)).toBe(true));
  });

  test("close with the server, which ends running calls", async () => {
    const provider = await startProvider();
    const upstreams = openUpstreams();
    const running = ask(upstreams.open(targetAt(provider.port)));
    await provider.next();
    await upstreams.close();
    expect((await running).error?.code).toBe("upstream_failed");
    await vi.waitFor(() => expect([...provider.sockets].every((socket) => socket.destroyed)).toBe(true));
  });
});
