import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, isIP, type LookupFunction } from "node:net";
import type { GuardedConnectOptions } from "@fairlead/inference/upstreams/guarded-connect";
import { PrivateAddressError } from "@fairlead/inference/upstreams/guarded-connect";
import { ask, targetAt } from "@fairlead/inference/upstreams/http-upstream.fixture";
import { HttpUpstreams, type HttpUpstreamsOptions } from "@fairlead/inference/upstreams/http-upstreams";
import { systemClock } from "@fairlead/protocol/values/clock";
import { ConnectProxy } from "@fairlead/wire/proxy/connect-proxy.fixture";
import { ProxyRules } from "@fairlead/wire/proxy/proxy-rules";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { outgoingFetch } from "./outgoing-fetch.ts";

let provider: Server;
let seen: string[];
let proxy: ConnectProxy;
let upstreams: HttpUpstreams;

beforeEach(async () => {
  seen = [];
  provider = createServer((request, response) => {
    seen.push(`${request.headers.host}${request.url}`);
    response.end("ok");
  });
  provider.listen(0, "127.0.0.1");
  await once(provider, "listening");
  const { port } = provider.address() as AddressInfo;
  // The proxy cannot connect to 9.9.9.1.
  const route = (target: string): string | null => (target.startsWith("9.9.9.1:") ? null : `127.0.0.1:${port}`);
  proxy = await ConnectProxy.start({ credentials: "me:secret", route });
});
afterEach(async () => {
  await upstreams?.close();
  proxy.close();
  provider.closeAllConnections();
  provider.close();
});

const proxied = (noProxy = ""): ProxyRules => new ProxyRules({ http: proxy.fullUrl, noProxy });
function open(options: Partial<HttpUpstreamsOptions>, target: { baseUrl: string; allowPrivate: boolean }) {
  upstreams = new HttpUpstreams({ clock: systemClock, proxies: proxied(), ...options });
  return upstreams.open(targetAt(0, target));
}

/** The names of one address book; every look-up is noted. */
function resolving(...addresses: readonly string[]): {
  asked: string[];
  lookup: NonNullable<GuardedConnectOptions["lookup"]>;
} {
  const asked: string[] = [];
  const lookup: LookupFunction = (host, { all }, callback) => {
    asked.push(host);
    const found = addresses.map((address) => ({ address, family: isIP(address) }));
    if (all === true) callback(null, found);
    else callback(null, found[0]?.address ?? "", found[0]?.family);
  };
  return { asked, lookup: lookup as never };
}

const platform = { baseUrl: "http://api.test:8123/v1", allowPrivate: true };
const ofProject = { ...platform, allowPrivate: false };

describe("a provider behind a proxy", () => {
  test("of the platform is passed by name to the proxy, which resolves it", async () => {
    const { asked, lookup } = resolving("127.0.0.1");
    expect(await ask(open({ lookup }, platform))).toMatchObject({ status: 200, text: "ok" });
    expect([proxy.targets, asked]).toEqual([["api.test:8123"], []]);
    expect(seen).toEqual(["api.test:8123/v1/chat/completions"]);
  });

  test("receives its next call on the same connection", async () => {
    const upstream = open({}, platform);
    await ask(upstream);
    await ask(upstream);
    expect(proxy.targets).toHaveLength(1);
  });

  test("of a project is resolved and checked here, and the proxy is given the address", async () => {
    const { lookup } = resolving("9.9.9.9", "9.9.9.10");
    expect(await ask(open({ lookup }, ofProject))).toMatchObject({ status: 200 });
    expect(proxy.targets).toEqual(["9.9.9.9:8123"]);
    expect(seen).toEqual(["api.test:8123/v1/chat/completions"]);
  });

  test("of a project is tried at its next address when the proxy cannot connect to the first", async () => {
    const { lookup } = resolving("9.9.9.1", "2620:fe::9");
    expect(await ask(open({ lookup }, ofProject))).toMatchObject({ status: 200 });
    expect(proxy.targets).toEqual(["[2620:fe::9]:8123"]);
    expect(proxy.refused).toEqual([503]);
  });

  test.each([["10.0.0.1"], ["9.9.9.9", "169.254.169.254"]])(
    "of a project with a private address (%s) is not requested from the proxy",
    async (...addresses) => {
      const { error } = await ask(open({ lookup: resolving(...addresses).lookup }, ofProject));
      expect(error?.cause).toBeInstanceOf(PrivateAddressError);
      expect([proxy.targets, seen]).toEqual([[], []]);
    },
  );

  test("of a project is passed by name to a proxy trusted to resolve it, except a private address", async () => {
    const { asked, lookup } = resolving("127.0.0.1");
    expect(await ask(open({ lookup, trustResolution: true }, ofProject))).toMatchObject({ status: 200 });
    expect([proxy.targets, asked]).toEqual([["api.test:8123"], []]);
    await upstreams.close();
    const inside = { ...ofProject, baseUrl: "http://10.0.0.1:8123/v1" };
    const { error } = await ask(open({ trustResolution: true }, inside));
    expect(error?.cause).toBeInstanceOf(PrivateAddressError);
    expect(proxy.targets).toHaveLength(1);
  });

  test("of a project whose name cannot be resolved here is not reached, and the error names the setting", async () => {
    const lookup = ((_host: string, _options: object, callback: (error: Error) => void) =>
      callback(new Error("ENOTFOUND"))) as never;
    const { error } = await ask(open({ lookup }, ofProject));
    expect(error?.cause).toMatchObject({ message: expect.stringContaining("proxy.trustResolution") });
    expect(proxy.targets).toEqual([]);
  });

  test("of a project that is excluded from the proxy is still checked", async () => {
    const { lookup } = resolving("127.0.0.1");
    const { error } = await ask(open({ lookup, proxies: proxied("api.test") }, ofProject));
    expect(error?.cause).toBeInstanceOf(PrivateAddressError);
    expect(proxy.targets).toEqual([]);
  });

  test("fails with the proxy's own message, without its password", async () => {
    proxy.status = 407;
    const { error } = await ask(open({}, platform));
    expect(error?.code).toBe("upstream_failed");
    expect(error?.cause).toMatchObject({ message: expect.stringContaining("requires a valid user and password") });
    expect(JSON.stringify([error?.message, String(error?.cause)])).not.toContain("secret");
  });
});

describe("calls to clouds and OIDC issuers", () => {
  test("go through the proxy with method, headers and body", async () => {
    const fetch = outgoingFetch(proxied());
    const response = await fetch("http://issuer.test/token", { method: "POST", body: new URLSearchParams({ a: "b" }) });
    expect([response.status, await response.text()]).toEqual([200, "ok"]);
    expect([proxy.targets, seen]).toEqual([["issuer.test:80"], ["issuer.test/token"]]);
  });

  test("reach loopback and excluded hosts directly", async () => {
    const { port } = provider.address() as AddressInfo;
    const fetch = outgoingFetch(proxied());
    expect((await fetch(`http://127.0.0.1:${port}/here`, {})).status).toBe(200);
    expect(proxy.targets).toEqual([]);
  });

  test("are aborted by their signal while the proxy does not respond", async () => {
    proxy.close();
    const silent = await ConnectProxy.start();
    silent.isSilent = true;
    const fetch = outgoingFetch(new ProxyRules({ http: silent.url }));
    const call = fetch("http://issuer.test/", { signal: AbortSignal.timeout(50) });
    await expect(call).rejects.toMatchObject({ name: "TimeoutError" });
    silent.close();
  });
});
