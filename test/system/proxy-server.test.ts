import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { ConnectProxy } from "@fairlead/wire/proxy/connect-proxy.fixture";
import { ProxyRules } from "@fairlead/wire/proxy/proxy-rules";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { FakeBrowser } from "../../packages/control-plane/src/people/pages/testing/fake-browser.ts";
import { createHttpClient } from "../../packages/daemon/src/link/http-client.ts";
import { FleetStage } from "../support/fleet-stage.ts";
import { HttpsProvider } from "../support/https-provider.ts";
import { hasProgram, type RealProxy, SQUID, startSquid } from "../support/real-proxy.ts";
import { selfSigned } from "../support/self-signed.ts";
import { waitFor } from "../support/wait-for.ts";

const WAIT_MS = 30_000;
/** Only the proxy can resolve it. */
const NAME = "provider.test";
const CREDENTIAL = "provider-key";
/** Nothing answers there; that they are asked for is what counts. (fetch refuses low ports by itself.) */
const ISSUER = "issuer.test";
const CLOUD = "cloud.test";

test("a proxy that is itself reached over TLS carries TLS", async () => {
  const trusted = getCACertificates("default");
  const tls = selfSigned(["provider.test"]);
  setDefaultCACertificates([...trusted, tls.cert]);
  const origin = createServer(tls, (_request, response) => response.end("inside two layers"));
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  const { port } = origin.address() as AddressInfo;
  const proxy = await ConnectProxy.start({ tls, credentials: "me:secret", route: () => `127.0.0.1:${port}` });
  const ask = createHttpClient(new ProxyRules({ https: proxy.fullUrl }));
  const answer = await ask({ method: "GET", url: `https://${NAME}/`, timeoutMs: WAIT_MS });
  expect(answer).toMatchObject({ status: 200, text: "inside two layers" });
  expect(proxy.targets).toEqual([`${NAME}:443`]);
  // The certificate is held against the name that was asked for, not against the proxy's.
  await expect(ask({ method: "GET", url: "https://other.test/", timeoutMs: WAIT_MS })).rejects.toThrow();
  proxy.close();
  origin.close();
  setDefaultCACertificates(trusted);
});

/** The control plane in a network that it leaves through squid alone. */
describe.skipIf(!hasProgram(SQUID))("a server behind squid with a password", () => {
  const dir = mkdtempSync(join(tmpdir(), "fairlead-proxy-server-"));
  const provider = new HttpsProvider({ credential: CREDENTIAL, redirectTo: "https://elsewhere.test" });
  let proxy: RealProxy;
  let stage: FleetStage;
  let key: string;

  beforeAll(async () => {
    await provider.start();
    const baseUrl = provider.baseUrl.replace("127.0.0.1", NAME);
    proxy = await startSquid({ names: [NAME, ISSUER, CLOUD], withPassword: true });
    const caFile = join(dir, "ca.pem");
    const credentialFile = join(dir, "credential");
    writeFileSync(caFile, provider.authority);
    writeFileSync(credentialFile, CREDENTIAL, { mode: 0o600 });
    const models = [{ name: "large" }];
    const ours = { name: "far", baseUrl, credentialFile, protocols: ["chat"], models };
    const issuer = { id: "sso", name: "SSO", issuer: `https://${ISSUER}:24443`, clientId: "c", clientSecret: "s" };
    const settings = {
      proxy: { https: proxy.fullUrl, caFile },
      providers: { platform: [ours] },
      signIn: { oidc: [issuer] },
      provisioning: { hetzner: { url: `https://${CLOUD}:24443/v1` } },
    };
    stage = await FleetStage.start({ nodes: 0, settings });
    const listed = await stage.call("GET", "/v1/projects");
    const [project] = z.object({ projects: z.array(z.object({ id: z.string() })) }).parse(listed).projects;
    const made = await stage.call("POST", `/v1/projects/${project?.id}/keys`, { projectId: project?.id, name: "k" });
    key = z.object({ key: z.object({ keyValue: z.string() }) }).parse(made).key.keyValue;
  });
  afterAll(async () => {
    await stage?.remove();
    await proxy?.stop();
    provider.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const ask = (): Promise<Response> =>
    fetch(`${stage.modelsUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "far/large", messages: [{ role: "user", content: "hi" }] }),
    });

  test("calls its providers over TLS through the proxy and reuses connections", async () => {
    for (let n = 0; n < 20; n++) expect((await ask()).status).toBe(200);
    // The discovery of models uses connections too, and a call may start before the previous one has given its connection back.
    expect(provider.connections).toBeLessThan(20);
    expect(provider.requests.at(-1)?.headers.host).toMatch(/^provider\.test:/);
  });

  test("calls OIDC issuers and clouds through the proxy", async () => {
    const body = JSON.stringify({ provider: "hetzner", providerToken: "t".repeat(64) });
    const headers = { authorization: `Bearer ${stage.token}`, "content-type": "application/json" };
    expect((await fetch(`${stage.platformUrl}/v1/plans:refresh`, { method: "POST", headers, body })).status).toBe(503);
    const browser = new FakeBrowser(stage.platformUrl);
    await browser.open("/sign-in");
    expect((await browser.submit("/sign-in/sso")).status).toBe(503);
    const asked = (): ReadonlySet<string> => new Set(proxy.targets().map((target) => target.split(":")[0] ?? ""));
    await waitFor("the proxy to log both", WAIT_MS, async () => asked().has(ISSUER) && asked().has(CLOUD));
  });

  test("writes no password to its log", async () => {
    expect(stage.server.log).not.toBe("");
    for (const secret of proxy.secrets) expect(stage.server.log).not.toContain(secret);
  });

  test("returns 502 while the proxy is down", async () => {
    await proxy.stop();
    // What was connected before is gone with it.
    const response = await ask();
    expect(response.status).toBe(502);
    expect(await response.text()).not.toContain("proxy-user");
  });
});
