import { once } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  type ConnectionCall,
  type ConnectionOwner,
  Http1Connection,
  type RenderedRequest,
} from "./http1-connection.ts";

/** A call, and the owner of its connection. */
class Told implements ConnectionCall, ConnectionOwner {
  status = 0;
  body = "";
  drains = 0;
  end: "whole" | Error | null = null;
  /** What became of the connection. */
  after: "free" | "gone" | null = null;
  takes = true;

  onHeaders(status: number): void {
    this.status = status;
  }

  onData(chunk: Buffer): boolean {
    this.body += chunk.toString("latin1");
    return this.takes;
  }

  onEnd(): void {
    this.end = "whole";
  }

  onLost(cause: Error): void {
    this.end = cause;
  }

  onDrain(): void {
    this.drains += 1;
  }

  keepsAfter(_headers: IncomingHttpHeaders): boolean {
    return true;
  }

  onFree(): void {
    this.after = "free";
  }

  onGone(): void {
    this.after = "gone";
  }
}

let server: Server;
let told: Told;
let connection: Http1Connection;
/** The other side's. */
let far: Socket;
/** What came there. */
let received: Buffer[];

beforeEach(async () => {
  server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  await reconnect();
});
afterEach(() => {
  connection.abort();
  far.destroy();
  server.close();
});

async function reconnect(): Promise<void> {
  const taken = once(server, "connection") as Promise<[Socket]>;
  const socket = connect({ host: "127.0.0.1", port: (server.address() as AddressInfo).port });
  [[far]] = await Promise.all([taken, once(socket, "connect")]);
  received = [];
  far.on("error", () => undefined);
  far.on("data", (bytes: Buffer) => received.push(bytes));
  told = new Told();
  connection = new Http1Connection(socket, told);
}

const came = (): string => Buffer.concat(received).toString("latin1");
const requestOf = (body: RenderedRequest["body"]): RenderedRequest => ({ method: "POST", head: "HEAD\r\n\r\n", body });
const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const BLOCK = Buffer.alloc(65_536, "b");

/** Writes until it is time to wait. @returns bytes */
function fill(): number {
  let bytes = BLOCK.length;
  while (connection.write(BLOCK)) bytes += BLOCK.length;
  return bytes;
}

describe("a request body that is written in pieces", () => {
  test("is sent in chunks if its length is unknown, with the head and small pieces in one write", async () => {
    connection.send(requestOf("chunked"), told);
    for (const piece of ["hello", "", ", my world"]) expect(connection.write(Buffer.from(piece))).toBe(true);
    connection.endBody();
    const whole = "HEAD\r\n\r\n5\r\nhello\r\na\r\n, my world\r\n0\r\n\r\n";
    await vi.waitFor(() => expect(came()).toBe(whole));
    expect(received).toHaveLength(1);
    far.write(OK);
    await vi.waitFor(() => expect(told).toMatchObject({ status: 200, body: "ok", end: "whole", after: "free" }));
  });

  test("is sent unchanged if its length is known, and is complete with its last byte", async () => {
    connection.send(requestOf(5), told);
    connection.write(Buffer.from("he"));
    connection.write(Buffer.from("llo"));
    await vi.waitFor(() => expect(came()).toBe("HEAD\r\n\r\nhello"));
    far.write(OK);
    await vi.waitFor(() => expect(told).toMatchObject({ end: "whole", after: "free" }));
    connection.endBody();
    expect(connection.isOpen).toBe(true);
  });

  test("is the same however it is split", async () => {
    const pieces = fc.array(fc.uint8Array({ maxLength: 20_000, size: "max" }), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(pieces, fc.boolean(), async (parts, isChunked) => {
        connection.abort();
        await reconnect();
        const body = Buffer.concat(parts);
        connection.send(requestOf(isChunked ? "chunked" : body.length), told);
        for (const part of parts) connection.write(Buffer.from(part));
        connection.endBody();
        const chunks = parts.filter((part) => part.length > 0);
        const framed = [...chunks, Buffer.alloc(0)].flatMap((chunk) => [
          Buffer.from(`${chunk.length.toString(16)}\r\n`),
          chunk,
          Buffer.from("\r\n"),
        ]);
        const whole = Buffer.concat([Buffer.from("HEAD\r\n\r\n"), ...(isChunked ? framed : [body])]);
        await vi.waitFor(() => expect(Buffer.concat(received).equals(whole)).toBe(true), { interval: 1 });
      }),
      { numRuns: 60 },
    );
  });

  test("waits for a slow reader", async () => {
    far.pause();
    connection.send(requestOf("chunked"), told);
    expect(fill()).toBeLessThan(64 * 1024 * 1024);
    expect(told.drains).toBe(0);
    far.resume();
    await vi.waitFor(() => expect(told.drains).toBeGreaterThan(0));
    expect(connection.write(Buffer.from("more"))).toBe(true);
  });

  test.each([
    ["shorter than", 6, "hello"],
    ["longer than", 4, "hello"],
    ["empty despite", 1, ""],
  ])("that is %s its stated length never looks complete", async (_name, length, body) => {
    connection.send(requestOf(length), told);
    connection.write(Buffer.from(body));
    connection.endBody();
    await vi.waitFor(() => expect(told).toMatchObject({ end: expect.any(Error), after: "gone" }));
    await vi.waitFor(() => expect(far.closed).toBe(true));
    expect(came()).not.toContain("hell");
  });

  test.each(["onHeaders", "onData", "onEnd"] as const)(
    "ends only its own connection when its call's `%s` throws",
    async (name) => {
      connection.send(requestOf(0), told);
      told[name] = () => {
        throw new Error("unexpected");
      };
      far.write(OK);
      await vi.waitFor(() => expect(told.after).toBe("gone"));
      expect(connection.isOpen).toBe(false);
    },
  );

  test("is dropped after a response that arrives before it is complete, and the connection is not reused", async () => {
    connection.send(requestOf("chunked"), told);
    connection.write(Buffer.from("some"));
    far.write(OK);
    await vi.waitFor(() => expect(told).toMatchObject({ end: "whole", body: "ok" }));
    expect(connection.write(BLOCK)).toBe(true);
    connection.endBody();
    await vi.waitFor(() => expect(told.after).toBe("gone"));
    expect(came()).not.toContain("b");
  });

  test("closes the connection immediately when its call aborts, without further callbacks", async () => {
    connection.send(requestOf("chunked"), told);
    connection.write(Buffer.from("some"));
    await vi.waitFor(() => expect(came()).toContain("some"));
    connection.abort();
    expect(connection.write(BLOCK)).toBe(true);
    connection.endBody();
    await vi.waitFor(() => expect(far.closed).toBe(true));
    expect(came()).not.toContain("0\r\n\r\n");
    expect(told).toMatchObject({ end: null, after: "gone" });
  });
});

describe("a response whose connection is reset", () => {
  test("during the upload is delivered if it arrives just before the reset", async () => {
    connection.send(requestOf("chunked"), told);
    await vi.waitFor(() => expect(came()).toContain("HEAD"));
    far.pause();
    fill();
    far.write("HTTP/1.1 413 Payload Too Large\r\ncontent-length: 2\r\n\r\nno", () => far.resetAndDestroy());
    await vi.waitFor(() => expect(told).toMatchObject({ status: 413, body: "no", end: "whole", after: "gone" }));
  });

  test("during the upload is complete for a reader that pauses", async () => {
    told.takes = false;
    far.pause();
    connection.send(requestOf("chunked"), told);
    fill();
    far.write("HTTP/1.1 413 x\r\ntransfer-encoding: chunked\r\n\r\n1\r\nn\r\n1\r\no\r\n0\r\n\r\n");
    await vi.waitFor(() => expect(told).toMatchObject({ status: 413, body: "n" }));
    far.resetAndDestroy();
    await vi.waitFor(() => expect(told).toMatchObject({ end: null, after: "gone" }));
    told.takes = true;
    connection.resume();
    expect(told).toMatchObject({ body: "no", end: "whole" });
  });

  test("while its reader pauses is delivered as far as it was received, followed by the error", async () => {
    told.takes = false;
    connection.send(requestOf([]), told);
    const chunk = `1000\r\n${"a".repeat(4096)}\r\n`;
    far.write(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunk}`);
    await vi.waitFor(() => expect(told.body).toHaveLength(4096));
    // More than waits in one read, and less than all that is read ahead.
    far.write(chunk.repeat(8), () => far.resetAndDestroy());
    await vi.waitFor(() => expect(told.after).toBe("gone"));
    expect(told).toMatchObject({ end: null, body: "a".repeat(4096) });
    told.takes = true;
    connection.resume();
    expect(told.body).toHaveLength(9 * 4096);
    expect(told.end).toBeInstanceOf(Error);
  });

  test.each([
    ["before its head", ""],
    ["inside its head", "HTTP/1.1 200 OK\r\ncontent-le"],
    ["inside its body", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok"],
    ["inside its chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n"],
  ])("or closed %s is never complete", async (_name, said) => {
    for (const end of ["end", "resetAndDestroy"] as const) {
      connection.send(requestOf("chunked"), told);
      await vi.waitFor(() => expect(came()).toContain("HEAD"));
      far.write(said, () => far[end]());
      await vi.waitFor(() => expect(told).toMatchObject({ end: expect.any(Error), after: "gone" }));
      await reconnect();
    }
  });
});
