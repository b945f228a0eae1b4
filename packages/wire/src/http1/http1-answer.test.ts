import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Http1Answer } from "./http1-answer.ts";
import { inPieces } from "./http1-messages.fixture.ts";
import { MalformedAnswer } from "./response-head.ts";

interface Told {
  status: number | null;
  headers: Record<string, unknown>;
  body: string;
  end: "again" | "once" | null;
}

/** Reads bytes in these pieces, and pauses after each part of the body where `pauses`. */
function read(pieces: readonly Buffer[], { forHead = false, pauses = false, closes = false } = {}): Told {
  const told: Told = { status: null, headers: {}, body: "", end: null };
  const answer = new Http1Answer({
    onHeaders: (status, headers) => {
      told.status = status;
      told.headers = { ...headers };
    },
    onData: (chunk) => {
      told.body += chunk.toString("latin1");
      return !pauses;
    },
    onEnd: (again) => {
      told.end = again ? "again" : "once";
    },
  });
  answer.expect(forHead);
  for (const piece of pieces) {
    answer.push(piece);
    // Another pause follows, as long as there is more of the body.
    while (answer.isPaused) answer.resume();
  }
  if (closes) answer.close();
  return told;
}

const bytes = (text: string): Buffer => Buffer.from(text, "latin1");

describe("an HTTP/1.1 response", () => {
  test("is read in full by its content length", () => {
    const told = read([bytes("HTTP/1.1 201 Created\r\nContent-Length: 5\r\nX-A:  b \r\n\r\nhello")]);
    expect(told).toEqual({
      status: 201,
      headers: { "content-length": "5", "x-a": "b" },
      body: "hello",
      end: "again",
    });
  });

  test("is read in full from its chunks, with extensions and trailers", () => {
    const told = read([
      bytes(
        "HTTP/1.1 200 \r\ntransfer-encoding: Chunked\r\n\r\n5;a=b\r\nhello\r\n00A\r\n, my world\r\n0\r\nx-sum: 1\r\n\r\n",
      ),
    ]);
    expect(told).toMatchObject({ status: 200, body: "hello, my world", end: "again" });
  });

  test("without a length ends with its connection, which is not reused", () => {
    const whole = bytes("HTTP/1.1 200 OK\r\n\r\nhello");
    expect(read([whole])).toMatchObject({ body: "hello", end: null });
    expect(read([whole], { closes: true })).toMatchObject({ body: "hello", end: "once" });
  });

  test.each([
    ["a HEAD request", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", true],
    ["status 204", "HTTP/1.1 204 No Content\r\n\r\n", false],
    ["status 304", "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", false],
    ["a content length of 0", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", false],
  ])("has no body for %s", (_name, text, forHead) => {
    expect(read([bytes(text)], { forHead })).toMatchObject({ body: "", end: "again" });
  });

  test.each([
    ["HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\na", "once"],
    ["HTTP/1.1 200 OK\r\nConnection: Keep-Alive\r\ncontent-length: 1\r\n\r\na", "again"],
    ["HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na", "once"],
    ["HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\na", "again"],
    // Bytes that nobody asked for would be taken for the next answer.
    ["HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 200 OK\r\n\r\n", "once"],
  ])("determines whether its connection can be reused: %j", (text, end) => {
    expect(read([bytes(text)])).toMatchObject({ body: "a", end });
  });

  test("may follow informational responses", () => {
    const text = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na";
    expect(read([bytes(text)])).toEqual({ status: 200, headers: { "content-length": "1" }, body: "a", end: "again" });
  });

  test("has repeated headers combined as in Node, and `__proto__` as an ordinary header", () => {
    const text =
      "HTTP/1.1 200 OK\r\nset-cookie: a\r\nset-cookie: b\r\nset-cookie: c\r\ncontent-type: e\r\nContent-Type: f\r\nvary: g\r\nvary: h\r\n__proto__: d\r\ncontent-length: 0\r\n\r\n";
    const { headers } = read([bytes(text)]);
    expect(headers["set-cookie"]).toEqual(["a", "b", "c"]);
    expect(headers).toMatchObject({ "content-type": "e", vary: "g, h" });
    expect(Object.hasOwn(headers, "__proto__")).toBe(true);
  });

  test.each([
    ["another protocol", "SSH-2.0-OpenSSH\r\n\r\n"],
    ["HTTP/2", "HTTP/2 200 OK\r\n\r\n"],
    ["an invalid status", "HTTP/1.1 099 x\r\n\r\n"],
    ["a protocol switch", "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"],
    ["a length with a sign", "HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\n"],
    ["a length in a list", "HTTP/1.1 200 OK\r\ncontent-length: 1, 1\r\n\r\n"],
    ["a length that is too large", "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999\r\n\r\n"],
    ["a length and chunks", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n"],
    ["a transfer coding that was not requested", "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n"],
    ["two chunked codings", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n"],
    ["a folded header", "HTTP/1.1 200 OK\r\nx-a: b\r\n c\r\n\r\n"],
    ["a space before the colon", "HTTP/1.1 200 OK\r\nx-a : b\r\n\r\n"],
    ["a bare line feed in a header", "HTTP/1.1 200 OK\r\nx-a: b\nx-c: d\r\n\r\n"],
    ["a zero byte in a header", "HTTP/1.1 200 OK\r\nx-a: b\0\r\n\r\n"],
    ["a header without a name", "HTTP/1.1 200 OK\r\n: b\r\n\r\n"],
    ["a chunk without a length", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n"],
    ["a chunk length that is not a number", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0x5\r\nhello\r\n"],
    ["a negative chunk length", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n"],
    ["a chunk length with a bare line feed", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\nhello\r\n"],
    ["a chunk length that is too large", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffff\r\n"],
    ["a chunk longer than its length", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhello\r\n"],
    ["an invalid trailer", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nnone\r\n\r\n"],
  ])("is rejected with %s", (_name, text) => {
    expect(() => read([bytes(text)])).toThrow(MalformedAnswer);
    expect(() => read([...bytes(text)].map((byte) => Buffer.of(byte)))).toThrow(MalformedAnswer);
  });

  test.each([
    ["head", "HTTP/1.1 200 OK\r\nx-a: "],
    ["chunk extension", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;"],
    ["trailer section", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx-a: "],
  ])("is rejected for an endless %s", (_name, text) => {
    const endless = Array.from({ length: 9 }, () => Buffer.alloc(8192, "a"));
    expect(() => read([bytes(text), ...endless])).toThrow(MalformedAnswer);
  });

  test("is the same however it is split, and however often its reader pauses", () => {
    const field = fc.tuple(fc.stringMatching(/^x-[a-z0-9]{1,8}$/), fc.stringMatching(/^[!-~]{0,20}$/));
    const framing = fc.constantFrom("length", "chunks", "close");
    fc.assert(
      fc.property(
        fc.record({
          fields: fc.uniqueArray(field, { maxLength: 6, selector: ([name]) => name }),
          parts: fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 6 }),
          how: framing,
          cuts: fc.array(fc.nat(400), { maxLength: 12 }),
          pauses: fc.boolean(),
        }),
        ({ fields, parts, how, cuts, pauses }) => {
          const body = Buffer.concat(parts);
          const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
          const chunk = (part: Uint8Array): Buffer =>
            Buffer.concat([bytes(`${part.length.toString(16)}\r\n`), part, bytes("\r\n")]);
          const rendered = {
            length: [bytes(`HTTP/1.1 200 OK\r\n${lines}content-length: ${body.length}\r\n\r\n`), body],
            chunks: [
              bytes(`HTTP/1.1 200 OK\r\n${lines}transfer-encoding: chunked\r\n\r\n`),
              ...parts.map(chunk),
              bytes("0\r\n\r\n"),
            ],
            close: [bytes(`HTTP/1.1 200 OK\r\n${lines}\r\n`), body],
          }[how];
          const whole = Buffer.concat(rendered);
          const told = read(inPieces(whole, cuts), { pauses, closes: true });
          expect(told.body).toBe(body.toString("latin1"));
          expect(told.headers).toMatchObject(Object.fromEntries(fields));
          expect(told.end).toBe(how === "close" ? "once" : "again");
        },
      ),
      { numRuns: 500 },
    );
  });

  test("that is cut off anywhere never counts as complete", () => {
    const text = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    for (let cut = 0; cut < text.length; cut++) {
      expect(read([bytes(text.slice(0, cut))], { closes: true }).end).toBeNull();
    }
  });
});
