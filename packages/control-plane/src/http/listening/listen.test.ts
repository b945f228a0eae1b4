import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { listen, reservePort, urlOf } from "./listen.ts";

test("a reserved port is known and in use, and is free again after its release", async () => {
  const reserved = await reservePort({ host: "127.0.0.1", port: 0, setting: "a.port" });
  expect(reserved.port).toBeGreaterThan(0);
  const request = { host: "127.0.0.1", port: reserved.port, setting: "b.port" };
  await expect(reservePort(request)).rejects.toThrow(`Port 127.0.0.1:${reserved.port} is already in use.`);
  await expect(reservePort(request)).rejects.toThrow("set b.port to a free port");
  await reserved.release();
  const server = createServer();
  await listen(server, request);
  server.close();
  await once(server, "close");
});

/** Opens connections from a thread of its own, and counts those that are open in the shared number. */
const STORM = `
  const { workerData: { port, count, open } } = require("node:worker_threads");
  const { connect } = require("node:net");
  for (let n = 0; n < count; n++) {
    connect(port, "127.0.0.1").on("error", () => {}).on("connect", () => {
      if (Atomics.add(open, 0, 1) + 1 === count) Atomics.notify(open, 0);
    });
  }
`;

test("a burst of connections waits for a busy event loop, and no connection has to be retried", async () => {
  const count = 700;
  const server = createServer();
  await listen(server, { host: "127.0.0.1", port: 0, setting: "a.port" });
  const { port } = server.address() as AddressInfo;
  const open = new Int32Array(new SharedArrayBuffer(4));
  const storm = new Worker(STORM, { eval: true, workerData: { port, count, open } });
  await once(storm, "online");
  // Nothing is accepted meanwhile: whoever is not taken into the queue asks again for longer than this.
  for (let n = 0; n < 100 && Atomics.load(open, 0) < count; n++) Atomics.wait(open, 0, Atomics.load(open, 0), 50);
  expect(Atomics.load(open, 0)).toBe(count);
  await storm.terminate();
  server.close();
});

test("an address that this machine does not have is reported in a clear message", async () => {
  const request = { host: "203.0.113.7", port: 0, setting: "server.platform.port" };
  await expect(reservePort(request)).rejects.toThrow("This machine does not have the address 203.0.113.7.");
});

test("URLs contain a host that a client can use", () => {
  expect(urlOf("127.0.0.1", 1)).toBe("http://127.0.0.1:1");
  expect(urlOf("0.0.0.0", 1)).toBe("http://127.0.0.1:1");
  expect(urlOf("::", 1)).toBe("http://[::1]:1");
  expect(urlOf("fairlead.local", 1)).toBe("http://fairlead.local:1");
});
