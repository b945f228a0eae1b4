import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import { AnswerBody } from "./answer-body.ts";

let server: Server | undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

async function serve(answer: (body: AnswerBody, response: ServerResponse) => unknown): Promise<number> {
  server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    answer(new AnswerBody(response), response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** What comes over the wire for these bytes, until the server closes. */
function raw(port: number, request: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(request);
  return text(socket);
}

test("pieces of every size arrive unchanged, and the response ends", async () => {
  const pieces = ["data: 1\n\n", "", "x".repeat(16 * 1024), "y".repeat(300_000), "é\n\n"];
  const port = await serve((body) => {
    for (const piece of pieces) body.write(Buffer.from(piece));
    body.end();
  });
  const answer = await fetch(`http://127.0.0.1:${port}`);
  expect(answer.headers.get("transfer-encoding")).toBe("chunked");
  expect(await answer.text()).toBe(pieces.join(""));
});

test("the first piece is sent unchanged even if it is not text", async () => {
  const bytes = Buffer.from(Array.from({ length: 512 }, (_, index) => index % 256));
  const port = await serve((body) => {
    body.write(bytes);
    body.end();
  });
  const answer = await fetch(`http://127.0.0.1:${port}`);
  expect(Buffer.from(await answer.arrayBuffer())).toEqual(bytes);
});

test("a caller that uses HTTP/1.0 gets the bytes without chunks", async () => {
  const port = await serve((body) => {
    body.write(Buffer.from("data: 1\n\n"));
    body.end();
  });
  const answer = await raw(port, "GET / HTTP/1.0\r\n\r\n");
  expect(answer.split("\r\n\r\n")[1]).toBe("data: 1\n\n");
});

test("pipelined requests get complete responses in order", async () => {
  let count = 0;
  const port = await serve((body) => {
    const own = ++count;
    // The first one takes longest.
    setTimeout(() => {
      body.write(Buffer.from(`answer ${own}`));
      body.end();
    }, 30 / own);
  });
  const one = "GET / HTTP/1.1\r\nHost: x\r\n";
  const answers = await raw(port, `${one}\r\n${one}Connection: close\r\n\r\n`);
  expect(answers.match(/^8\r\nanswer \d\r\n0\r\n\r$/gm)).toEqual([
    "8\r\nanswer 1\r\n0\r\n\r",
    "8\r\nanswer 2\r\n0\r\n\r",
  ]);
});

test("writing reports when the caller is too slow and when it has caught up", async () => {
  const drained = Promise.withResolvers<boolean>();
  const port = await serve((body, response) => {
    response.on("drain", () => {
      body.end();
      drained.resolve(true);
    });
    while (body.write(Buffer.alloc(4096, "x")));
  });
  const answer = await fetch(`http://127.0.0.1:${port}`);
  expect((await answer.text()).length).toBeGreaterThan(4096);
  expect(await drained.promise).toBe(true);
});
