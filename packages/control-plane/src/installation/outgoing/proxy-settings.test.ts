import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates } from "node:tls";
import { systemClock } from "@fairlead/protocol/values/clock";
import { ConnectProxy } from "@fairlead/wire/proxy/connect-proxy.fixture";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Config, ConfigError, loadConfig } from "../config/config.ts";
import { checkProxies } from "../operations/doctor.ts";
import { checkPublicUrl } from "../operations/network-checks.ts";
import { StartError } from "../process/start-error.ts";
import { trustAuthorities } from "./trust-authorities.ts";

const through = (config: Config, url: string): string | null => config.proxy.rules.find(new URL(url))?.url ?? null;

describe("the settings `proxy`", () => {
  let dir: string;
  let file: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "fairlead-proxy-settings-"));
    file = join(dir, "config.yaml");
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  test("take precedence over the environment, one by one", () => {
    writeFileSync(file, "proxy: { https: 'http://set.test:3128', noProxy: intern.test }");
    const env = { HTTPS_PROXY: "http://env.test:1", http_proxy: "http://env.test:2", NO_PROXY: "*" };
    const config = loadConfig({ file, env });
    expect(through(config, "https://api.test/")).toBe("http://set.test:3128");
    expect(through(config, "http://api.test/")).toBe("http://env.test:2");
    expect(through(config, "https://intern.test/")).toBeNull();
    expect(config.proxy.trustResolution).toBe(false);
  });

  test("can come from the environment alone, and without either there is no proxy", () => {
    expect(through(loadConfig({ env: { https_proxy: "env.test:1" } }), "https://api.test/")).toBe("http://env.test:1");
    expect(through(loadConfig({ env: {} }), "https://api.test/")).toBeNull();
    const env = { FAIRLEAD_PROXY_HTTPS: "http://set.test:1", FAIRLEAD_PROXY_TRUST_RESOLUTION: "true" };
    expect(loadConfig({ env }).proxy.trustResolution).toBe(true);
  });

  test.each([
    [{ FAIRLEAD_PROXY_HTTPS: "socks5://me:secret@p.test" }, "proxy.https"],
    [{ HTTP_PROXY: "ftp://me:secret@p.test" }, "HTTP_PROXY"],
  ])("that are invalid are reported with their name, without their value", (env, path) => {
    const load = () => loadConfig({ env });
    expect(load).toThrow(ConfigError);
    expect(load).toThrow(path);
    expect(load).toThrow(expect.not.objectContaining({ message: expect.stringContaining("secret") }));
  });

  test("stop the start with a clear message when the CA file contains no certificates", () => {
    writeFileSync(file, "nothing");
    const before = getCACertificates("default").length;
    expect(() => trustAuthorities({ caFile: file })).toThrow(StartError);
    expect(() => trustAuthorities({ caFile: join(dir, "none.pem") })).toThrow(/proxy\.caFile: .* cannot be used/);
    expect(getCACertificates("default")).toHaveLength(before);
  });
});

describe("the doctor", () => {
  test("requests the public address through the proxy, as others in this network do", async () => {
    const origin = createHttpServer((_request, response) => response.end());
    await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
    const { port } = origin.address() as AddressInfo;
    const proxy = await ConnectProxy.start({ route: () => `127.0.0.1:${port}` });
    const env = { FAIRLEAD_SERVER_PUBLIC_URL: "http://platform.test/fairlead", HTTP_PROXY: proxy.url };
    expect(await checkPublicUrl(loadConfig({ env }), "platform", systemClock)).toMatchObject({ status: "ok" });
    expect(proxy.targets).toEqual(["platform.test:80"]);
    proxy.close();
    origin.close();
  });

  test("reports which proxies are set, without their passwords, and whether they respond", async () => {
    const server = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}`;
    const config = loadConfig({ env: { HTTPS_PROXY: `http://me:secret@127.0.0.1:${port}`, HTTP_PROXY: url } });
    expect(await checkProxies(config)).toEqual({
      check: "proxy",
      status: "ok",
      message: `https through ${url} with a password, http through ${url}`,
    });
    await new Promise((resolve) => server.close(resolve));
    const { status, message } = await checkProxies(config);
    expect([status, message]).toEqual(["fail", expect.stringMatching(`^${url} cannot be reached: .*REFUSED`)]);
    expect(await checkProxies(loadConfig({ env: {} }))).toMatchObject({ status: "skipped" });
  });
});
