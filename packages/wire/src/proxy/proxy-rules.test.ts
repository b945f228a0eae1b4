import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { InvalidProxy, NO_PROXIES, ProxyRules, proxyEnvironment } from "./proxy-rules.ts";

const found = (rules: ProxyRules, url: string): string | null => rules.find(new URL(url))?.url ?? null;

describe("the environment's proxies", () => {
  test("are read in both cases; the lower-case name takes precedence, and an empty value counts as none", () => {
    const env = { HTTPS_PROXY: "upper:1", https_proxy: "lower:1", HTTP_PROXY: "http:1", http_proxy: "", NO_PROXY: "x" };
    expect(proxyEnvironment(env)).toEqual({ https: "lower:1", http: "http:1", noProxy: "x" });
    expect(proxyEnvironment({ HTTPS_PROXY: "", NO_PROXY: "" })).toEqual({});
  });
});

describe("the proxy rules", () => {
  const rules = new ProxyRules({ https: "http://secure.test:3128", http: "plain.test:8080", noProxy: "intern.test" });

  test.each([
    ["https://example.com/", "http://secure.test:3128"],
    ["wss://example.com/", "http://secure.test:3128"],
    ["http://example.com/", "http://plain.test:8080"],
    ["ws://example.com/", "http://plain.test:8080"],
    ["https://intern.test/", null],
    ["https://A.INTERN.test./", null],
  ])("send %s through %s", (url, proxy) => {
    expect(found(rules, url)).toBe(proxy);
  });

  test.each([
    "127.0.0.1",
    "127.9.9.9",
    "localhost",
    "a.localhost",
    "localhost.",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "0.0.0.0",
    "[::]",
  ])("never send loopback (%s) through a proxy", (host) => {
    expect(found(rules, `https://${host}:8443/`)).toBeNull();
    expect(found(rules, `http://${host}/`)).toBeNull();
  });

  test("know the default port of the protocol", () => {
    const only = new ProxyRules({ https: "p:1", noProxy: "example.com:443" });
    expect(found(only, "https://example.com/")).toBeNull();
    expect(found(only, "https://example.com:8443/")).toBe("http://p:1");
  });

  test("connect directly without proxies", () => {
    expect(found(NO_PROXIES, "https://example.com/")).toBeNull();
  });

  test("keep the user and password out of the proxy's address", () => {
    const { https } = new ProxyRules({ https: "http://us%40er:p%3Ass@proxy.test:3128" });
    expect(https?.url).toBe("http://proxy.test:3128");
    expect(https?.authorization).toBe(`Basic ${Buffer.from("us@er:p:ss").toString("base64")}`);
    expect(JSON.stringify(https) + inspect(https)).not.toContain("Basic");
  });

  test.each([
    "socks5://user:secret@proxy.test:1080",
    "http://",
    "http://user:secret@",
    "http://a:%zz@proxy.test",
    "a b:1",
  ])("reject %s without repeating it", (value) => {
    const error = (() => {
      try {
        return new ProxyRules({ http: value });
      } catch (cause) {
        return cause;
      }
    })();
    expect(error).toBeInstanceOf(InvalidProxy);
    expect(error).toMatchObject({ setting: "http", message: expect.not.stringContaining("secret") });
  });
});
