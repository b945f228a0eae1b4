import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { divertRequests } from "./divert-requests.ts";

let server: Server;

beforeEach(async () => {
  server = createServer({ connectionsCheckingInterval: 10 }, (_request, response) => response.end());
  const nothing = { takes: () => false, handle: () => undefined };
  divertRequests(server, nothing, { headersMs: 50, bodyMs: 50 });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

test.each([
  { sends: "nothing", bytes: "" },
  { sends: "half a head", bytes: "GET / HTTP/1.1\r\nHost:" },
])("closes a connection that sends nothing more after $sends", async ({ bytes }) => {
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.write(bytes);
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 408 /);
});
