import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openLocalAdmin } from "../../installation/admin/local-admin.ts";
import { type Config, loadConfig } from "../../installation/config/config.ts";
import { type RunningServer, startServer } from "../../server.ts";
import { isLoopbackPeer } from "./metrics-routes.ts";

const TOKEN = "scraper-token-of-enough-characters";

describe("/metrics", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "fairlead-metrics-"));
  const tokenFile = join(dataDir, "metrics-token");
  let config: Config;
  let server: RunningServer;
  const forwarded = { "x-forwarded-for": "192.0.2.1" };

  beforeAll(async () => {
    const env = {
      FAIRLEAD_DATA_DIR: dataDir,
      FAIRLEAD_SERVER_PLATFORM_PORT: "0",
      FAIRLEAD_SERVER_INFERENCE_PORT: "0",
      FAIRLEAD_LOG_LEVEL: "silent",
      FAIRLEAD_SERVER_PUBLIC_URL: "https://fairlead.example.org",
      FAIRLEAD_METRICS_TOKEN_FILE: tokenFile,
    };
    writeFileSync(tokenFile, `${TOKEN}\n`, { mode: 0o600 });
    config = loadConfig({ env });
    server = await startServer(config);
  });
  afterAll(async () => {
    await server.close();
    rmSync(dataDir, { recursive: true });
  });

  async function tokenFor(email: string, platformAdmin: boolean): Promise<string> {
    const admin = await openLocalAdmin(config);
    await admin.createUser({ email, name: email, platformAdmin });
    const { token } = await admin.createToken({ email });
    await admin.close();
    return token;
  }
  const scrape = (headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${server.platformUrl}/metrics`, { headers });

  /** With a `Host` of its own, as a browser sends it that was led here by another name. */
  async function statusFor(headers: Record<string, string>): Promise<number | undefined> {
    const asked = httpRequest(`${server.platformUrl}/metrics`, { headers, agent: false }).end();
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    answer.resume();
    return answer.statusCode;
  }

  test("shows a local program the state of both hosts, the fleet and the store", async () => {
    await fetch(`${server.platformUrl}/v1/nodes/nod_secret`);
    await fetch(`${server.inferenceUrl}/v1/chat/completions`, { method: "POST", body: "{}" });
    const response = await scrape();
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const text = await response.text();
    for (const line of [
      'fairlead_http_requests_total{host="platform",method="GET",route="/v1/nodes/{id}",status="401"} 1',
      'fairlead_http_requests_total{host="inference",method="POST",route="/v1/chat/completions",status="401"} 1',
      'fairlead_inference_calls_total{outcome="invalid_credential",dialect="chat",upstream=""} 1',
      "fairlead_inference_calls_in_flight 0",
      "fairlead_inference_buffered_bytes 0",
      "fairlead_inference_relayed_bytes_total 0",
      "fairlead_inference_first_byte_seconds_count 0",
      "fairlead_inference_overhead_seconds_count 0",
      "fairlead_inference_first_token_seconds_count 0",
      "fairlead_inference_call_seconds_count 0",
      "fairlead_billing_holds_open 0",
      "fairlead_usage_records_dropped_total 0",
      "fairlead_billing_held_dollars 0",
      "fairlead_daemon_links_open 0",
      "fairlead_tunnels_open 0",
      "fairlead_heartbeats_total 0",
      'fairlead_nodes{status="active"} 0',
      'fairlead_agents{state="running"} 0',
    ]) {
      expect(text).toContain(`\n${line}\n`);
    }
    expect(text).toMatch(/\nfairlead_store_statement_seconds_bucket\{le="\+Inf",handle="main"\} [1-9]/);
    expect(text).toMatch(/\nprocess_resident_memory_bytes [1-9]/);
  });

  test("contains exactly the metrics of docs/metrics.md", async () => {
    const text = await (await scrape()).text();
    const told = Array.from(text.matchAll(/^# TYPE (fairlead_\S+) (\S+)$/gm), ([, name, type]) => `${name} ${type}`);
    const page = readFileSync(new URL("../../../../../docs/metrics.md", import.meta.url), "utf8");
    const written = Array.from(
      page.matchAll(/^\| `(fairlead_\w+)[^|]*\| (\w+) \|/gm),
      ([, name, type]) => `${name} ${type}`,
    );
    expect(written).toEqual(told.toSorted());
  });

  test("contains no project, node or person", async () => {
    const token = await tokenFor("ann@example.org", false);
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    await fetch(`${server.platformUrl}/v1/projects`, { method: "POST", headers, body: '{"name":"hidden-name"}' });
    await fetch(`${server.platformUrl}/v1/projects/prj_hidden`, { headers });
    expect(await (await scrape()).text()).not.toMatch(/prj_|nod_|usr_|hidden|ann@/);
  });

  test("requires a platform administrator's token from others, even behind a proxy on this machine", async () => {
    expect((await scrape(forwarded)).status).toBe(401);
    const person = await tokenFor("bob@example.org", false);
    expect((await scrape({ ...forwarded, authorization: `Bearer ${person}` })).status).toBe(404);
    const administrator = await tokenFor("root@example.org", true);
    expect((await scrape({ ...forwarded, authorization: `Bearer ${administrator}` })).status).toBe(200);
  });

  describe("without a token", () => {
    const port = (): string => new URL(server.platformUrl).port;

    test.each(["localhost", "LOCALHOST", "127.0.0.1", "[::1]"])("is served locally as %s", async (name) => {
      expect(await statusFor({ host: `${name}:${port()}` })).toBe(200);
    });

    test("is served locally under the public name", async () => {
      expect(await statusFor({ host: "fairlead.example.org" })).toBe(200);
    });

    test.each(["rebound.example", "localhost.example", "fairlead.example.org.example", "10.0.0.1"])(
      "is not served to a page that reaches it under the name %s",
      async (name) => {
        expect(await statusFor({ host: `${name}:${port()}` })).toBe(401);
        expect(await statusFor({ host: name })).toBe(401);
      },
    );

    test("is not served under its own name with another port", async () => {
      expect(await statusFor({ host: "localhost" })).toBe(401);
      expect(await statusFor({ host: "localhost:1" })).toBe(401);
      expect(await statusFor({ host: "fairlead.example.org:1" })).toBe(401);
    });
  });

  test("is served anywhere to a scraper with the token in `metrics.tokenFile`, and to no other", async () => {
    const from = (token: string): Promise<number | undefined> =>
      statusFor({ ...forwarded, host: "elsewhere.example", authorization: `Bearer ${token}` });
    expect(await from(TOKEN)).toBe(200);
    expect(await from(`${TOKEN}x`)).toBe(401);
    expect(await from(TOKEN.slice(1))).toBe(401);
    expect(await from("")).toBe(401);
  });

  test.each([
    ["127.0.0.1", true],
    ["127.8.9.10", true],
    ["::1", true],
    ["::ffff:127.0.0.1", true],
    ["10.0.0.1", false],
    ["::ffff:10.0.0.1", false],
    ["1.127.0.0.1", false],
    [undefined, false],
  ])("treats the address %s as local: %s", (address, local) => {
    expect(isLoopbackPeer(address)).toBe(local);
  });
});
