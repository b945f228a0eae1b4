import { globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { HttpsProvider } from "../support/https-provider.ts";
import { StartedServer } from "../support/started-server.ts";

/** Providers through the server as it is shipped: a real https upstream, and whoever would reach inside by one. */

const SECRET = "sk-Acme-0f3b5c7d9e1a2b4c6d8e0f1a3b5c7d9e";
const dir = mkdtempSync(join(tmpdir(), "fairlead-providers-"));
const dataDir = join(dir, "data");
const caFile = join(dir, "ca.pem");
const credentialFile = join(dir, "shared.key");

/** Where nothing may ever come. */
let trap: Server;
let trapped = 0;
let upstream: HttpsProvider;
let server: StartedServer;
let token = "";
let key = "";
let projectPath = "";
/** All that was ever answered, by either host. */
const answers: string[] = [];
let logs = "";

const jsonObject = z.record(z.string(), z.unknown());
const withProject = z.object({ project: z.object({ id: z.string() }) });
const withKey = z.object({ key: z.object({ keyValue: z.string() }) });
const withData = z.object({ data: z.array(z.looseObject({ id: z.string() })) });

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
}

async function call(
  [method, url]: readonly [string, string],
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const credential = url.startsWith(server.modelsUrl) ? key : token;
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${credential}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  answers.push(text, JSON.stringify([...response.headers]));
  return { status: response.status, text, body: text.startsWith("{") ? jsonObject.parse(JSON.parse(text)) : {} };
}

const api = (method: string, path: string, body?: unknown): Promise<Answer> =>
  call([method, `${server.url}${projectPath}${path}`], body);
const chat = (model: string | undefined, more: object = {}, headers = {}): Promise<Answer> =>
  call(
    ["POST", `${server.modelsUrl}/v1/chat/completions`],
    { ...(model === undefined ? {} : { model }), messages: [{ role: "user", content: "Hi" }], ...more },
    headers,
  );

async function start(providers: object): Promise<void> {
  server = await StartedServer.start({ dataDir, log: { level: "debug" }, providers });
  await server.asOperator(async (admin) => {
    await admin.createUser({ email: "ann@example.org", name: "Ann", platformAdmin: false }).catch(() => undefined);
    ({ token } = await admin.createToken({ email: "ann@example.org" }));
  });
}

async function restart(providers: object): Promise<void> {
  logs += server.log;
  await server.remove();
  await start(providers);
}

const shared = (): object => ({ name: "shared", baseUrl: upstream.baseUrl, credentialFile });
const loose = (): object => ({ allowPrivate: true, caFile, platform: [shared()] });

beforeAll(async () => {
  trap = createServer((_request, response) => {
    trapped++;
    response.end("secrets of the inside");
  });
  await new Promise<void>((resolve) => trap.listen(0, "127.0.0.1", resolve));
  const redirectTo = `http://127.0.0.1:${(trap.address() as AddressInfo).port}/latest/meta-data`;
  upstream = new HttpsProvider({ credential: SECRET, redirectTo });
  await upstream.start();
  writeFileSync(caFile, upstream.authority);
  writeFileSync(credentialFile, `${SECRET}\n`, { mode: 0o600 });
  await start(loose());
  const { body } = await call(["POST", `${server.url}/v1/projects`], { name: "Providers" });
  projectPath = `/v1/projects/${withProject.parse(body).project.id}`;
  const made = await api("POST", "/keys", { name: "key" });
  key = withKey.parse(made.body).key.keyValue;
});
afterAll(async () => {
  await server.remove();
  upstream.close();
  trap.close();
  rmSync(dir, { recursive: true, force: true });
});

describe("a provider over HTTPS with a certificate from the operator's CA", () => {
  test("is created, checked, and called with its own credential and no other", async () => {
    const body = {
      name: "acme",
      baseUrl: `${upstream.baseUrl}/`,
      credential: SECRET,
      headers: { "X-Title": "Fairlead" },
      forwardHeaders: ["OpenAI-Beta"],
      models: [{ name: "large", contextTokens: 4096, prices: { input: 1_000_000, output: 2_000_000 } }],
      discovery: true,
    };
    expect(await api("POST", "/providers", body)).toMatchObject({
      status: 200,
      body: { provider: { hasCredential: true } },
    });
    expect(await api("POST", "/providers/acme:check", {})).toMatchObject({
      status: 200,
      body: { result: "ok", models: ["large", "org/small"] },
    });
    const answer = await chat(
      "acme/large",
      { seed: 12_345 },
      { "openai-beta": "x=1", "x-secret": "no", cookie: "a=b" },
    );
    expect(answer).toMatchObject({ status: 200, body: { choices: [{ message: { content: "Hello." } }] } });
    const seen = upstream.requests.at(-1);
    expect(seen).toMatchObject({ method: "POST", path: "/deep/v1/chat/completions" });
    expect(JSON.parse(seen?.body ?? "")).toMatchObject({ model: "large", seed: 12_345 });
    expect(seen?.headers).toMatchObject({
      authorization: `Bearer ${SECRET}`,
      "x-title": "Fairlead",
      "openai-beta": "x=1",
    });
    expect(seen?.headers).not.toHaveProperty("x-secret");
    expect(seen?.headers).not.toHaveProperty("cookie");
    expect(JSON.stringify(upstream.requests)).not.toContain(key);
  });

  test("streams", async () => {
    const { text } = await chat("acme/large", { stream: true });
    expect(text).toMatch(/"content":"Hel".*"content":"lo\.".*data: \[DONE\]\n\n$/s);
  });

  test("answers a call in a dialect that it does not speak", async () => {
    const answer = await call(["POST", `${server.modelsUrl}/v1/responses`], { model: "acme/large", input: "Hi" });
    expect(answer).toMatchObject({ status: 200, body: { object: "response", status: "completed" } });
  });

  test("is listed with what is known about its models, beside the platform's providers and aliases", async () => {
    const alias = { targets: ["acme/unheard-of", "acme/large"] };
    expect(await api("PUT", "/aliases/fast", alias)).toMatchObject({ status: 200 });
    const { body } = await call(["GET", `${server.modelsUrl}/v1/models`]);
    const { data } = withData.parse(body);
    expect(data.map(({ id }) => id)).toEqual([
      "acme/large",
      "acme/org/small",
      "fast",
      "shared/large",
      "shared/org/small",
    ]);
    expect(data[0]).toMatchObject({ context_length: 4096, prices: { input: 1_000_000 }, owned_by: "acme" });
    const one = await call(["GET", `${server.modelsUrl}/v1/models/acme%2Forg%2Fsmall`]);
    expect(one).toMatchObject({ status: 200, body: { id: "acme/org/small" } });
  });

  test("receives calls that name no model if it has the project's default model", async () => {
    expect(await chat(undefined)).toMatchObject({ status: 400, body: { error: { param: "model" } } });
    const path = `${server.url}${projectPath}`;
    expect(await call(["PATCH", path], { defaultModel: "acme/large" })).toMatchObject({
      body: { defaultModel: "acme/large" },
    });
    expect(await chat(undefined)).toMatchObject({ status: 200 });
    expect(JSON.parse(upstream.requests.at(-1)?.body ?? "")).toMatchObject({ model: "large" });
    await call(["PATCH", path], { defaultModel: null });
    expect(await chat(undefined)).toMatchObject({ status: 400 });
  });

  test("of the platform works in every project, and its name is reserved", async () => {
    expect(await chat("shared/large")).toMatchObject({ status: 200 });
    for (const name of ["shared", "nodes", "acme", "fast"]) {
      const refused = await api("POST", "/providers", { name, baseUrl: "https://api.example.com" });
      expect(refused, name).toMatchObject({ status: 409, body: { error: { code: "already_exists" } } });
    }
    const node = { projectId: projectPath.split("/").at(-1), planId: "byo", name: "Acme" };
    const made = await call(["POST", `${server.url}/v1/nodes`], node);
    expect(made.body).toMatchObject({ node: { identifier: "acme-2" } });
    const taken = await api("PUT", "/aliases/acme-2", { targets: ["nodes/x"] });
    expect(taken).toMatchObject({ status: 409 });
  });

  test("is created once for one Idempotency-Key, and its credential is not kept for the repetition", async () => {
    const body = { name: "twice", baseUrl: upstream.baseUrl, credential: SECRET };
    const url = `${server.url}${projectPath}/providers`;
    const first = await call(["POST", url], body, { "idempotency-key": "k1" });
    const second = await call(["POST", url], body, { "idempotency-key": "k1" });
    expect(second).toMatchObject({ status: 200, text: first.text });
    expect(await call(["POST", url], { ...body, name: "b" }, { "idempotency-key": "k1" })).toMatchObject({
      status: 409,
    });
  });

  test("that rejects its credential or requires payment is reported as our error, in our words", async () => {
    await api("PATCH", "/providers/twice", { credential: "sk-wrong" });
    for (const model of ["twice/large", "acme/unpaid"]) {
      const answer = await chat(model);
      expect(answer).toMatchObject({ status: 502, body: { error: { code: "upstream_rejected_credentials" } } });
    }
    const check = await api("POST", "/providers/twice:check", {});
    expect(check.body).toMatchObject({ result: "credential_refused", status: 401 });
  });

  test("that redirects is not followed", async () => {
    const answer = await chat("acme/elsewhere");
    expect(answer).toMatchObject({ status: 502, body: { error: { code: "upstream_failed" } } });
    expect(answer.text).not.toContain("secrets of the inside");
    expect(trapped).toBe(0);
  });

  test("loses its credential when its base URL changes, and is called without one from then on", async () => {
    const moved = await api("PATCH", "/providers/twice", { baseUrl: upstream.baseUrl.replace("/deep", "/other") });
    expect(moved.body).toMatchObject({ hasCredential: false });
    await chat("twice/large");
    expect(upstream.requests.at(-1)?.path).toBe("/other/v1/chat/completions");
    expect(upstream.requests.at(-1)?.headers).not.toHaveProperty("authorization");
  });
});

describe("a server that does not know the CA", () => {
  test("connects to no server whose certificate it cannot trust, and reports why", async () => {
    await restart({ allowPrivate: true });
    const before = upstream.requests.length;
    expect((await api("POST", "/providers/acme:check", {})).body).toMatchObject({
      result: "unreachable",
      message: expect.stringContaining("certificate"),
    });
    expect(await chat("acme/large")).toMatchObject({ status: 502 });
    expect(upstream.requests).toHaveLength(before);
  });
});

describe("a server that keeps projects out of its internal network", () => {
  beforeAll(async () => {
    await restart({ caFile });
  });

  test.each([
    "http://93.184.216.34/v1",
    "https://127.0.0.1:8443/v1",
    "https://2130706433/v1",
    "https://0x7f.1/v1",
    "https://[::1]/v1",
    "https://[::ffff:169.254.169.254]/v1",
    "https://169.254.169.254/latest",
    "https://10.0.0.1/v1",
    "https://localhost/v1",
    "https://metadata.google.internal/v1",
    "https://user:pw@example.com/v1",
    "https://example.com/v1?x=1",
  ])("refuses a provider at %s, new or changed", async (baseUrl) => {
    const refusal = { status: 400, body: { error: { code: "invalid_request", param: "baseUrl" } } };
    expect(await api("POST", "/providers", { name: "inside", baseUrl })).toMatchObject(refusal);
    expect(await api("PATCH", "/providers/acme", { baseUrl })).toMatchObject(refusal);
  });

  test("opens no internal connection for a provider saved earlier, by call, check or list", async () => {
    const { connections } = upstream;
    expect(await chat("acme/large")).toMatchObject({ status: 502, body: { error: { code: "upstream_failed" } } });
    expect((await api("POST", "/providers/acme:check", {})).body).toMatchObject({ result: "unreachable" });
    const { text } = await call(["GET", `${server.modelsUrl}/v1/models`]);
    expect(text).toContain("acme/large");
    expect(text).not.toContain("acme/org/small");
    expect(upstream.connections).toBe(connections);
    expect(trapped).toBe(0);
  });
});

test("the credential appears in no response, log line or file of the store", async () => {
  expect(answers.length).toBeGreaterThan(60);
  expect(answers.filter((text) => text.includes(SECRET))).toEqual([]);
  logs += server.log;
  expect(logs).toContain("server started");
  expect(logs).not.toContain(SECRET);
  const files = globSync("**/*", { cwd: dataDir })
    .map((name) => join(dataDir, name))
    .filter((path) => statSync(path).isFile());
  expect(files.some((path) => path.endsWith(".db"))).toBe(true);
  const forms = [SECRET, Buffer.from(SECRET).toString("base64").slice(0, 40), Buffer.from(SECRET).toString("hex")];
  for (const path of files) {
    const bytes = readFileSync(path);
    for (const form of forms) expect(bytes.includes(form), path).toBe(false);
  }
});
