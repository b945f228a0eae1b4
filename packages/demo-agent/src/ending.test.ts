import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, test } from "vitest";
import { endsWhenIdle } from "./ending.ts";

test("running requests finish, and an idle connection does not keep the program from ending", async () => {
  const begun = Promise.withResolvers<ServerResponse>();
  const server = createServer((_request, response) => begun.resolve(response));
  const end = endsWhenIdle(server);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const silent = connect(port, "127.0.0.1");
  await once(silent, "connect");
  const answered = fetch(`http://127.0.0.1:${port}/`);
  const response = await begun.promise;
  const closed = once(server, "close");
  end();
  response.end("done");
  expect(await (await answered).text()).toBe("done");
  await closed;
  expect(server.listening).toBe(false);
});

test("an idle program ends immediately", async () => {
  const server = createServer();
  const end = endsWhenIdle(server);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const silent = connect((server.address() as AddressInfo).port, "127.0.0.1");
  await once(server, "connection");
  const closed = once(server, "close");
  end();
  await Promise.all([closed, once(silent.resume(), "close")]);
  expect(server.listening).toBe(false);
});
