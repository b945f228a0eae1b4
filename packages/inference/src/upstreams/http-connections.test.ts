import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { systemClock } from "@fairlead/protocol/values/clock";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ask, REQUEST, targetAt } from "./http-upstream.fixture.ts";
import { HttpUpstreams, type HttpUpstreamsOptions } from "./http-upstreams.ts";

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

function openUpstreams(options: Partial<HttpUpstreamsOptions> = {}): HttpUpstreams {
  const upstreams = new HttpUpstreams({ clock: systemClock, ...options });
  closers.push(() => upstreams.close());
  return upstreams;
}

describe("a connection to a provider", () => {
  /** Says this for every request, whatever it is, and then maybe closes. */
  async function saying(
    text: string,
    { closes = false, pauses = false } = {},
  ): Promise<{ port: number; requests: string[]; sockets: Socket[] }> {
    const requests: string[] = [];
    const sockets: Socket[] = [];
    const server = createTcpServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => undefined);
      socket.on("data", (bytes: Buffer) => {
        requests.push(bytes.toString("latin1"));
        if (pauses && requests.length === 1) socket.pause();
        if (closes) socket.end(text);
        else socket.write(text);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closers.push(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return { port: (server.address() as AddressInfo).port, requests, sockets };
  }

  test("sends a request without chunked encoding", async () => {
    const { port, requests } = await saying("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    await ask(openUpstreams().open(targetAt(port)));
    expect(requests).toEqual([
      `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nconnection: keep-alive\r\n` +
        "authorization: Bearer theirs\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
    ]);
  });

  test.each([
    ["is not HTTP", "SSH-2.0-OpenSSH\r\n\r\n"],
    ["is ambiguous", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["ends too early", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok"],
  ])("is closed, and its call fails, if the response %s", async (_name, text) => {
    const { port, sockets } = await saying(text, { closes: true });
    const { error } = await ask(openUpstreams().open(targetAt(port)));
    expect(error?.code).toBe("upstream_failed");
    await vi.waitFor(() => expect(sockets.every((socket) => socket.destroyed)).toBe(true));
  });

  test.each([
    ["has `connection: close`", "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"],
    ["announces a short keep-alive timeout", "HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 2\r\n\r\nok"],
    ["is followed by another response", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n"],
  ])("is not reused if the response %s", async (_name, text) => {
    const { port, sockets } = await saying(text);
    const upstream = openUpstreams().open(targetAt(port));
    expect((await ask(upstream)).text).toBe("ok");
    expect((await ask(upstream)).text).toBe("ok");
    expect(sockets.length).toBe(2);
  });

  test("is not reused after being idle for longer than the server keeps it", async () => {
    const clock = new TestClock();
    const { port, sockets } = await saying("HTTP/1.1 200 OK\r\nkeep-alive: timeout=60\r\ncontent-length: 2\r\n\r\nok");
    const upstream = openUpstreams({ clock }).open(targetAt(port));
    for (const waits of [0, 58_999, 59_001]) {
      clock.advance(waits);
      expect((await ask(upstream)).text).toBe("ok");
    }
    expect(sockets.length).toBe(2);
  });

  test("is closed if it receives data while idle", async () => {
    const { port, sockets } = await saying("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    const upstream = openUpstreams().open(targetAt(port));
    await ask(upstream);
    sockets[0]?.write("HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n");
    await vi.waitFor(() => expect(sockets[0]?.destroyed).toBe(true));
    expect((await ask(upstream)).text).toBe("ok");
  });

  test("keeps what a paused reader has not read if the provider closes it", async () => {
    const { port, sockets } = await saying(
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n",
      { closes: true },
    );
    const log: string[] = [];
    const call = openUpstreams()
      .open(targetAt(port))
      .dispatch(REQUEST, {
        onHeaders: (status) => void log.push(String(status)),
        onData: (chunk) => log.push(chunk.toString()) < 0,
        onEnd: () => void log.push("end"),
        onError: (error) => void log.push(error.message),
      });
    await vi.waitFor(() => expect(sockets[0]?.destroyed).toBe(true));
    expect(log).toEqual(["200", "a"]);
    call.resume();
    expect(log).toEqual(["200", "a", "b"]);
    call.resume();
    expect(log).toEqual(["200", "a", "b", "end"]);
  });

  test("is closed if the response arrives before the request is completely sent", async () => {
    const { port, sockets } = await saying("HTTP/1.1 413 Payload Too Large\r\ncontent-length: 2\r\n\r\nno", {
      pauses: true,
    });
    const body = Array.from({ length: 400 }, () => Buffer.alloc(65_536));
    const headers = { "content-length": String(400 * 65_536) };
    const answer = ask(openUpstreams().open(targetAt(port)), { ...REQUEST, headers, body });
    expect(await answer).toMatchObject({ status: 413, text: "no" });
    sockets[0]?.resume();
    await vi.waitFor(() => expect(sockets[0]?.destroyed).toBe(true));
  });
});
