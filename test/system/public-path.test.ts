import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { openLocalAdmin } from "../../packages/control-plane/src/installation/admin/local-admin.ts";
import { loadConfig } from "../../packages/control-plane/src/installation/config/config.ts";
import { FakeBrowser } from "../../packages/control-plane/src/people/pages/testing/fake-browser.ts";
import { CommandLine } from "../support/command-line.ts";
import { FleetStage } from "../support/fleet-stage.ts";
import { hasNginx, type Nginx, nginxExamples, startNginx } from "../support/nginx.ts";
import { twoFreePorts } from "../support/ports.ts";
import { selfSigned } from "../support/self-signed.ts";
import { SimulatedDaemon } from "../support/simulated-daemon.ts";
import { waitFor } from "../support/wait-for.ts";

const WAIT_MS = 30_000;
const EMAIL = "admin@fleet.local";
const PASSWORD = "correct horse battery";
const issuerSchema = z.looseObject({ issuer: z.string(), authorization_endpoint: z.string() });

const certificate = selfSigned();
const trusted = getCACertificates("default");
beforeAll(() => setDefaultCACertificates([...trusted, certificate.cert]));
afterAll(() => setDefaultCACertificates(trusted));

/** Both hosts below paths of one name, behind nginx as docs/operations.md has it. */
describe.skipIf(!hasNginx)("below a path", () => {
  const dir = mkdtempSync(join(tmpdir(), "fairlead-path-"));
  const caFile = join(dir, "fullchain.pem");
  let stage: FleetStage;
  let nginx: Nginx;
  let origin: string;
  let publicUrl: string;
  let modelsUrl: string;
  let key: string;
  let ann: FakeBrowser;

  beforeAll(async () => {
    const keyFile = join(dir, "privkey.pem");
    writeFileSync(caFile, certificate.cert);
    writeFileSync(keyFile, certificate.key);
    const [port] = await twoFreePorts();
    origin = `https://127.0.0.1:${port}`;
    [publicUrl, modelsUrl] = [`${origin}/fairlead`, `${origin}/models`];
    const server = { publicUrl, modelsUrl, trustedProxies: ["127.0.0.1"] };
    stage = await FleetStage.start({ nodes: 1, settings: { server } });
    // Before the reset link ends the session.
    const listed = await stage.call("GET", "/v1/projects");
    const [project] = z.object({ projects: z.array(z.object({ id: z.string() })) }).parse(listed).projects;
    const made = await stage.call("POST", `/v1/projects/${project?.id}/keys`, { projectId: project?.id, name: "k" });
    key = z.object({ key: z.object({ keyValue: z.string() }) }).parse(made).key.keyValue;
    const [whole = "", below = ""] = nginxExamples();
    const http = `${whole.slice(0, whole.indexOf("server {\n"))}${below}`
      .replace("127.0.0.1:8080", new URL(stage.platformUrl).host)
      .replace("127.0.0.1:8081", new URL(stage.modelsUrl).host)
      .replace("listen 443 ssl", `listen 127.0.0.1:${port} ssl`)
      .replace("/etc/ssl/fairlead/fullchain.pem", caFile)
      .replace("/etc/ssl/fairlead/privkey.pem", keyFile);
    nginx = startNginx(dir, http);
    await waitFor("nginx", WAIT_MS, async () => (await fetch(`${publicUrl}/healthz`)).ok);
    ann = new FakeBrowser(origin);
  });
  afterAll(async () => {
    await nginx?.stop();
    await stage?.remove();
    rmSync(dir, { recursive: true, force: true });
  });

  test("a link signs its user in, with form, redirect and stylesheet below the path", async () => {
    const admin = await openLocalAdmin(loadConfig({ file: join(stage.dir, "config.yaml"), env: {} }));
    const { url } = await admin.resetLink({ email: EMAIL });
    await admin.close();
    expect(url.startsWith(`${publicUrl}/reset/`)).toBe(true);
    const { pathname } = new URL(url);
    const { text } = await ann.open(pathname);
    const [, stylesheet = ""] = /<link rel="stylesheet" href="([^"]+)"/.exec(text) ?? [];
    expect(stylesheet).toMatch(/^\/fairlead\/assets\//);
    expect((await fetch(origin + stylesheet)).headers.get("content-type")).toContain("text/css");
    await ann.submit(pathname, { password: PASSWORD });
    expect(ann.shown).toMatchObject({ status: 200, path: "/fairlead/account?done=password_set" });
  });

  test("every link and form of a page stays below the path", async () => {
    const { text } = await ann.open("/fairlead/account");
    const paths = Array.from(text.matchAll(/(?:href|action)="([^"]*)"/g), ([, path = ""]) => path);
    expect(paths.length).toBeGreaterThan(4);
    expect(paths.filter((path) => !path.startsWith("/fairlead/"))).toEqual([]);
  });

  test("cookies are limited to the path", async () => {
    const cookies = (await fetch(`${publicUrl}/sign-in`)).headers.getSetCookie();
    expect(cookies).toEqual([expect.stringMatching(/^__Secure-fairlead_form=[\w-]+; Path=\/fairlead; .*; Secure$/)]);
    expect([...ann.cookies.keys()].toSorted()).toEqual(["__Secure-fairlead_form", "__Secure-fairlead_session"]);
  });

  test("signing in returns to the requested page", async () => {
    await ann.submit("/fairlead/sign-out");
    expect(ann.shown.path).toBe("/fairlead/sign-in");
    await ann.open("/fairlead/device");
    expect(ann.shown.path).toMatch(/^\/fairlead\/sign-in\?/);
    await ann.submit("/fairlead/sign-in", { email: EMAIL, password: PASSWORD });
    expect(ann.shown).toMatchObject({ status: 200, path: "/fairlead/device" });
    expect((await ann.open("/fairlead/")).path).toBe("/fairlead/account");
    const bare = await fetch(publicUrl, { redirect: "manual" });
    expect(new URL(bare.headers.get("location") ?? "", publicUrl).href).toBe(`${publicUrl}/`);
  });

  test("OAuth clients find the metadata at the locations of RFC 8414 and of OIDC", async () => {
    for (const url of [
      `${origin}/.well-known/oauth-authorization-server/fairlead`,
      `${publicUrl}/.well-known/openid-configuration`,
    ]) {
      const metadata = issuerSchema.parse(await (await fetch(url)).json());
      expect(metadata.issuer).toBe(publicUrl);
      expect(metadata.authorization_endpoint).toBe(`${publicUrl}/v1/oauth/authorize`);
    }
  });

  test("a program's request for access shows the consent page and redirects back with our issuer", async () => {
    const query = new URLSearchParams({
      client_id: "fairlead-cli",
      redirect_uri: "http://127.0.0.1:9/callback",
      response_type: "code",
      code_challenge: "c".repeat(43),
      code_challenge_method: "S256",
      state: "s",
    });
    await ann.open(`/fairlead/v1/oauth/authorize?${query.toString()}`);
    expect(ann.shown.path).toMatch(/^\/fairlead\/consent\?/);
    const [form] = ann.forms();
    const { text } = await ann.post(form?.action ?? "", { ...form?.hidden, decision: "allow" });
    const [, next = ""] = /content="0; url=([^"]+)"/.exec(text) ?? [];
    const back = new URL(next.replaceAll("&amp;", "&"));
    expect([back.host, back.searchParams.get("iss")]).toEqual(["127.0.0.1:9", publicUrl]);
  });

  test("the command line signs in and works", async () => {
    const laptop = new CommandLine({ FAIRLEAD_CA_FILE: caFile });
    const login = laptop.start("login", "--base-url", publicUrl);
    await ann.open("/fairlead/device");
    await ann.submit("/fairlead/device", { user_code: await login.noticed(/enter the code {2}(\S+)/) });
    await ann.submit("/fairlead/device/decision", { decision: "allow", started: "yes" });
    expect(await login.finished).toMatchObject({ code: 0, out: `signed in to ${publicUrl} as ${EMAIL}\n` });
    expect((await laptop.run("whoami")).out).toContain(EMAIL);
    laptop.remove();
  });

  test("a daemon's link and tunnel connect", async () => {
    const [node] = stage.nodes;
    if (node === undefined) throw new Error("there is no node");
    const daemon = new SimulatedDaemon(
      { ...node, identity: { ...node.identity, platformUrl: publicUrl } },
      { tunnel: true },
    );
    await waitFor("the link", WAIT_MS, async () => daemon.isLive);
    await waitFor("the tunnel", WAIT_MS, async () => daemon.hasTunnel);
    await daemon.close();
  });

  test("install.sh contains the whole URL", async () => {
    const script = await (await fetch(`${publicUrl}/install.sh`)).text();
    expect(script).toContain(`platform_url='${publicUrl}'`);
  });

  test("models are listed below the inference host's path", async () => {
    const response = await fetch(`${modelsUrl}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    expect([response.status, await response.json()]).toEqual([200, expect.objectContaining({ object: "list" })]);
  });
});
