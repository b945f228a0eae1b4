import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadConfig } from "../../installation/config/config.ts";
import { type RunningServer, startServer } from "../../server.ts";

/** Sends one head and reads until the server closes or has answered. */
function send(url: string, lines: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(`${[...lines, "connection: close", "", ""].join("\r\n")}`);
    });
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString();
      // An upgrade that is not refused stays open.
      if (text.startsWith("HTTP/1.1 101")) socket.destroy();
    });
    socket.once("close", () => resolve(text));
    socket.once("error", reject);
  });
}

describe("an ambiguous request head", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "fairlead-head-"));
  let server: RunningServer;

  beforeAll(async () => {
    const env = {
      FAIRLEAD_DATA_DIR: dataDir,
      FAIRLEAD_SERVER_PLATFORM_PORT: "0",
      FAIRLEAD_SERVER_INFERENCE_PORT: "0",
      FAIRLEAD_LOG_LEVEL: "silent",
    };
    server = await startServer(loadConfig({ env }));
  });
  afterAll(async () => {
    await server.close();
    rmSync(dataDir, { recursive: true });
  });

  const upgrade = ["upgrade: websocket", "connection: upgrade", "sec-websocket-version: 13", "sec-websocket-key: x"];
  const entrances = [
    ["the platform host", "GET /v1/me", []],
    ["the inference host", "GET /v1/models", []],
    ["an upgrade", "GET /v1/daemon/link", upgrade],
    ["the relay", "GET /v1/nodes/nod_1/gateway/x", []],
  ] as const;

  const faults = [
    ["two `host` lines", ["host: a.example", "Host: b.example"], "host"],
    ["two equal `host` lines", ["host: a.example", "host: a.example"], "host"],
    ["two `authorization` lines", ["host: a", "authorization: Bearer a", "Authorization: Bearer b"], "authorization"],
    ["two `x-api-key` lines", ["host: a", "x-api-key: a", "x-api-key: b"], "x-api-key"],
    [
      "two `service-project-id` lines",
      ["host: a", "service-project-id: a", "service-project-id: b"],
      "service-project-id",
    ],
    ["two `idempotency-key` lines", ["host: a", "idempotency-key: a", "idempotency-key: b"], "idempotency-key"],
    ["two `content-type` lines", ["host: a", "content-type: a/b", "content-type: c/d"], "content-type"],
    ["userinfo in `host`", ["host: a.example@b.example"], "host"],
    ["a list in `host`", ["host: a.example, b.example"], "host"],
    ["a path in `host`", ["host: a.example/b"], "host"],
    ["an empty `host`", ["host:"], "host"],
  ] as const;

  describe.each(entrances)("at %s", (name, request, more) => {
    const base = (): string => (name === "the inference host" ? server.inferenceUrl : server.platformUrl);

    test.each(faults)("is refused: %s", async (_, lines, param) => {
      const text = await send(base(), [`${request} HTTP/1.1`, ...lines, ...more]);
      expect(text).toMatch(/^HTTP\/1.1 400 /);
      expect(text).toContain(`"param":"${param}"`);
    });

    test("is refused: a whole URL as the target", async () => {
      const target = request.replace(" /", " http://b.example/");
      const text = await send(base(), [`${target} HTTP/1.1`, "host: a.example", ...more]);
      expect(text).toMatch(/^HTTP\/1.1 400 /);
      expect(text).toContain("must be a path");
    });

    test.each(["a.example", "a_b.example.:65535", "127.0.0.1:8080", "[::1]:8080", "xn--bcher-kva.example"])(
      "does not include the host %s, or several cookies and forwarded addresses",
      async (host) => {
        const lines = [`host: ${host}`, "cookie: a=1", "cookie: b=2", "x-forwarded-for: 1", "x-forwarded-for: 2"];
        const text = await send(base(), [`${request} HTTP/1.1`, ...lines, ...more]);
        expect(text).toMatch(/^HTTP\/1.1 (401|404|426|101) /);
      },
    );
  });

  test("does not include a health check without a host over HTTP/1.0", async () => {
    expect(await send(server.platformUrl, ["GET /healthz HTTP/1.0"])).toMatch(/^HTTP\/1.1 200 /);
  });
});
