import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test, vi } from "vitest";
import { jsonOf, nodeHttpClient } from "./http-client.ts";

test("a name that does not resolve is a failed call, which is retried: `network-online` promises no DNS (crowdsecurity/cs-firewall-bouncer#217)", async () => {
  // RFC 6761 §6.4: this name never resolves.
  const call = nodeHttpClient({ method: "POST", url: "https://platform.invalid/v1", body: {}, timeoutMs: 5000 });
  await expect(call).rejects.toThrow(/^POST https:\/\/platform\.invalid: (the call failed|no answer within 5000 ms)$/);
});

test("a body of more than a megabyte is refused", async () => {
  const server = createServer((_request, response) => {
    response.on("error", () => undefined);
    response.end("x".repeat(1024 * 1024 + 1));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const error = await nodeHttpClient({ method: "GET", url, timeoutMs: 10_000 }).catch((cause: unknown) => cause);
  server.close();
  expect(error).toMatchObject({ cause: { message: expect.stringContaining("1048576 bytes") as unknown } });
});

test("a body nested deeper than any expected one is not parsed", () => {
  const parse = vi.spyOn(JSON, "parse");
  const deep = jsonOf({ status: 200, headers: {}, text: "[".repeat(100_000) });
  const calls = parse.mock.calls.length;
  parse.mockRestore();
  expect([deep, calls]).toEqual([null, 0]);
});
