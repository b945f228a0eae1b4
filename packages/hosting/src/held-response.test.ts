import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, expect, test } from "vitest";
import { HeldResponse } from "./held-response.ts";

let server: Server | undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

interface Received {
  readonly text: string;
  readonly pieces: number;
}

/** What a caller gets until its connection is closed. */
async function receive(answer: (held: HeldResponse, response: ServerResponse) => void): Promise<Received> {
  server = createServer((_request, response) => {
    response.writeHead(200);
    answer(new HeldResponse(response), response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const pieces: Buffer[] = [];
  socket.on("data", (piece: Buffer) => pieces.push(piece));
  await once(socket, "close");
  return { text: Buffer.concat(pieces).toString(), pieces: pieces.length };
}

test("everything written in one turn arrives in one piece, including the end", async () => {
  const received = await receive((held, response) => {
    held.hold();
    response.write("one");
    response.write("two");
    held.endWith(() => response.end("three"));
  });
  expect(received.pieces).toBe(1);
  expect(received.text).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\n3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n$/);
});

test("a response that is aborted in the turn of its first bytes sends them and does not look complete", async () => {
  const received = await receive((held, response) => {
    held.hold();
    response.write("half");
    held.break();
  });
  expect(received.text).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\n4\r\nhalf\r\n$/);
});

test("a response that is aborted in the turn of its head sends the head", async () => {
  const received = await receive((held) => held.break());
  expect(received.text).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\n$/);
});
