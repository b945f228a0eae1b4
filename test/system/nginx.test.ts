import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { FleetStage } from "../support/fleet-stage.ts";
import { hasNginx, type Nginx, nginxExamples, startNginx } from "../support/nginx.ts";
import { twoFreePorts } from "../support/ports.ts";
import { selfSigned } from "../support/self-signed.ts";
import { SimulatedDaemon } from "../support/simulated-daemon.ts";
import { waitFor } from "../support/wait-for.ts";

const WAIT_MS = 30_000;
const EVENT = (content: string): string => `data: {"choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`;

const projectsSchema = z.object({ projects: z.array(z.object({ id: z.string() })) });
const keySchema = z.object({ key: z.object({ keyValue: z.string() }) });
const auditSchema = z.object({ auditEvents: z.array(z.object({ action: z.string(), address: z.string() })) });

/** A provider that streams as a test tells it, and counts what it is sent. */
class Provider {
  readonly #server: Server = createServer((incoming, response) => {
    let bytes = 0;
    incoming.on("data", (piece: Buffer) => (bytes += piece.length));
    incoming.on("end", () => {
      this.lastBody = bytes;
      this.onCall(response);
    });
  });
  lastBody = 0;
  onCall: (response: ServerResponse) => void = (response) => response.end();

  async start(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** Both ways to TLS. */
interface Way {
  readonly name: string;
  readonly settings: (files: { readonly certFile: string; readonly keyFile: string }) => Record<string, unknown>;
  readonly throughNginx: boolean;
}
const WAYS: readonly Way[] = [
  { name: "the server's own TLS", settings: (tls) => ({ tls }), throughNginx: false },
  ...(hasNginx
    ? [
        {
          name: "nginx as docs/operations.md has it",
          settings: () => ({ trustedProxies: ["127.0.0.1"] }),
          throughNginx: true,
        },
      ]
    : []),
];

/** One for all: this process can trust but one of a name. */
const certificate = selfSigned();
const trusted = getCACertificates("default");
beforeAll(() => setDefaultCACertificates([...trusted, certificate.cert]));
afterAll(() => setDefaultCACertificates(trusted));

describe.each(WAYS)("behind $name", ({ settings, throughNginx }) => {
  const dir = mkdtempSync(join(tmpdir(), "fairlead-nginx-"));
  const provider = new Provider();
  let stage: FleetStage;
  let nginx: Nginx | null = null;
  let platformUrl: string;
  let modelsUrl: string;
  let projectId: string;
  let key: string;

  beforeAll(async () => {
    const files = { certFile: join(dir, "fullchain.pem"), keyFile: join(dir, "privkey.pem") };
    writeFileSync(files.certFile, certificate.cert);
    writeFileSync(files.keyFile, certificate.key);
    const models = [{ name: "m" }];
    const platform = [{ name: "slow", baseUrl: await provider.start(), protocols: ["chat"], models }];
    stage = await FleetStage.start({ nodes: 1, settings: { server: settings(files), providers: { platform } } });
    [platformUrl, modelsUrl] = throughNginx ? await startOurNginx(files) : [stage.platformUrl, stage.modelsUrl];
    projectId = projectsSchema.parse(await stage.call("GET", "/v1/projects")).projects[0]?.id ?? "";
    const made = await stage.call("POST", `/v1/projects/${projectId}/keys`, { projectId, name: "through TLS" });
    key = keySchema.parse(made).key.keyValue;
  });

  afterAll(async () => {
    await nginx?.stop();
    await stage?.remove();
    provider.close();
    rmSync(dir, { recursive: true, force: true });
  });

  /** The example of the page, with this test's ports and files. */
  async function startOurNginx(files: {
    readonly certFile: string;
    readonly keyFile: string;
  }): Promise<[string, string]> {
    const [example = ""] = nginxExamples();
    const [first, second] = await twoFreePorts();
    const replaced = example
      .replace("127.0.0.1:8080", new URL(stage.platformUrl).host)
      .replace("127.0.0.1:8081", new URL(stage.modelsUrl).host)
      .replace("listen 443 ssl", `listen 127.0.0.1:${first} ssl`)
      .replace("listen 443 ssl", `listen 127.0.0.1:${second} ssl`)
      .replace("/etc/ssl/fairlead/fullchain.pem", files.certFile)
      .replace("/etc/ssl/fairlead/privkey.pem", files.keyFile);
    nginx = startNginx(dir, replaced);
    const urls: [string, string] = [`https://127.0.0.1:${first}`, `https://127.0.0.1:${second}`];
    await waitFor("nginx", WAIT_MS, async () => (await fetch(`${urls[0]}/healthz`)).ok);
    return urls;
  }

  test("both hosts respond", async () => {
    for (const url of [platformUrl, modelsUrl]) expect((await fetch(`${url}/readyz`)).status).toBe(200);
  });

  test("a daemon's link and tunnel connect and stay open", async () => {
    const [node] = stage.nodes;
    if (node === undefined) throw new Error("there is no node");
    const identity = { ...node.identity, platformUrl };
    const daemon = new SimulatedDaemon({ ...node, identity }, { tunnel: true });
    await waitFor("the link", WAIT_MS, async () => daemon.isLive);
    await waitFor("the tunnel", WAIT_MS, async () => daemon.hasTunnel);
    expect(daemon.links).toBe(1);
    await daemon.close();
  });

  test("a response is streamed piece by piece, as the model produces it", async () => {
    const goOn = Promise.withResolvers<void>();
    provider.onCall = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(EVENT("first"));
      void goOn.promise.then(() => response.end(`${EVENT("second")}data: [DONE]\n\n`));
    };
    const response = await ask({ stream: true, messages: [{ role: "user", content: "hi" }] });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    const first = await reader?.read();
    expect(first?.value).toContain("first");
    expect(first?.value).not.toContain("second");
    goOn.resolve();
    let rest = "";
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) rest += next.value;
    expect(rest).toContain("second");
  });

  test("a body of 20 MB is accepted", async () => {
    provider.onCall = (response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const message = { role: "assistant", content: "read" };
      response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }] }));
    };
    const response = await ask({ messages: [{ role: "user", content: "x".repeat(20_000_000) }] });
    expect(response.status).toBe(200);
    expect(provider.lastBody).toBeGreaterThan(20_000_000);
  });

  test("the audit log has the client's own address, neither the proxy's nor one that the client claims", async () => {
    const call = request(`${platformUrl}/v1/projects/${projectId}/keys`, {
      method: "POST",
      localAddress: "127.0.0.9",
      headers: {
        authorization: `Bearer ${stage.token}`,
        "content-type": "application/json",
        "x-forwarded-for": "6.6.6.6",
      },
    });
    call.end(JSON.stringify({ projectId, name: "from afar" }));
    const [response] = (await once(call, "response")) as [IncomingMessage];
    expect({ status: response.statusCode, body: await text(response) }).toMatchObject({ status: 200 });
    const { auditEvents } = auditSchema.parse(
      await stage.call("GET", `/v1/projects/${projectId}/audit?action=key.create`),
    );
    expect(auditEvents[0]?.address).toBe("127.0.0.9");
  });

  function ask(body: object): Promise<Response> {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify({ model: "slow/m", ...body }) };
    return fetch(`${modelsUrl}/v1/chat/completions`, init);
  }
});
