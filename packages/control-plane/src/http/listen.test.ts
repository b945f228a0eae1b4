import { once } from "node:events";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { listen, reservePort, urlOf } from "./listen.ts";

test("a reserved port is known, taken, and free again after its release", async () => {
  const reserved = await reservePort({ host: "127.0.0.1", port: 0, setting: "a.port" });
  expect(reserved.port).toBeGreaterThan(0);
  const request = { host: "127.0.0.1", port: reserved.port, setting: "b.port" };
  await expect(reservePort(request)).rejects.toThrow(`Port 127.0.0.1:${reserved.port} is taken by another program.`);
  await expect(reservePort(request)).rejects.toThrow("set b.port to a free port");
  await reserved.release();
  const server = createServer();
  await listen(server, request);
  server.close();
  await once(server, "close");
});

test("an address that this machine does not have is told in words", async () => {
  const request = { host: "203.0.113.7", port: 0, setting: "server.platform.port" };
  await expect(reservePort(request)).rejects.toThrow("This machine has no address 203.0.113.7.");
});

test("URLs name a host that a client can use", () => {
  expect(urlOf("127.0.0.1", 1)).toBe("http://127.0.0.1:1");
  expect(urlOf("0.0.0.0", 1)).toBe("http://127.0.0.1:1");
  expect(urlOf("::", 1)).toBe("http://[::1]:1");
  expect(urlOf("fairlead.local", 1)).toBe("http://fairlead.local:1");
});
