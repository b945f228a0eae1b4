import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { encodePageToken } from "../../http/requests/pagination.ts";
import { openLocalAdmin } from "../../installation/admin/local-admin.ts";
import { type Config, loadConfig } from "../../installation/config/config.ts";
import { type RunningServer, startServer } from "../../server.ts";

const SECRET_WORDS = "my dearest secret";
const USAGE = {
  prompt_tokens: 100,
  completion_tokens: 20,
  total_tokens: 120,
  prompt_tokens_details: { cached_tokens: 60 },
};
/** A tenth of what the tokens are, and two for each call. */
const PRICES = { input: 100_000, output: 100_000, perRequest: 2 };
const COST = 14;

const usageSchema = z.object({
  from: z.string(),
  groupBy: z.array(z.string()),
  totals: z.object({ calls: z.number(), costNanoDollars: z.number() }).loose(),
  groups: z.array(z.object({ calls: z.number() }).loose()),
});
const callsSchema = z.object({
  calls: z.array(z.object({ requestId: z.string(), outcome: z.string() }).loose()),
  nextPageToken: z.string(),
});
const created = z.object({ key: z.object({ id: z.string(), keyValue: z.string() }) });
const refused = z.object({ error: z.object({ code: z.string(), param: z.string().nullable() }) });

/** A provider that counts what it likes. */
function startProvider(): Promise<Server> {
  const provider = createServer((request, response) => {
    void text(request).then(() => {
      const choices = [{ index: 0, message: { role: "assistant", content: SECRET_WORDS }, finish_reason: "stop" }];
      response.writeHead(200, { "content-type": "application/json" });
      response.end(
        JSON.stringify({ id: "c", object: "chat.completion", created: 1, model: "small", choices, usage: USAGE }),
      );
    });
  });
  return new Promise((resolve) => provider.listen(0, "127.0.0.1", () => resolve(provider)));
}

describe("a project's usage on a real server", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "fairlead-usage-"));
  let provider: Server;
  let config: Config;
  let server: RunningServer;
  let token: string;
  let project: string;
  let key: z.infer<typeof created>["key"];

  const platform = async (method: string, path: string, body?: object): Promise<unknown> => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(`${server.platformUrl}${path}`, { method, headers, body: JSON.stringify(body) ?? null });
    return answer.json();
  };
  const usage = async (query = ""): Promise<z.infer<typeof usageSchema>> =>
    usageSchema.parse(await platform("GET", `${project}/usage${query}`));
  const calls = async (query = ""): Promise<z.infer<typeof callsSchema>> =>
    callsSchema.parse(await platform("GET", `${project}/usage/calls${query}`));
  /** @returns the request's id. */
  const ask = async (model: string): Promise<string | null> => {
    const answer = await fetch(`${server.inferenceUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key.keyValue}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages: [{ role: "user", content: SECRET_WORDS }] }),
    });
    await answer.arrayBuffer();
    return answer.headers.get("x-request-id");
  };

  beforeAll(async () => {
    provider = await startProvider();
    const baseUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`;
    const cloud = { name: "cloud", baseUrl, models: [{ name: "small", prices: PRICES }] };
    config = loadConfig({
      env: {
        FAIRLEAD_DATA_DIR: dataDir,
        FAIRLEAD_SERVER_PLATFORM_PORT: "0",
        FAIRLEAD_SERVER_INFERENCE_PORT: "0",
        FAIRLEAD_LOG_LEVEL: "silent",
        FAIRLEAD_PROVIDERS_PLATFORM: JSON.stringify([cloud]),
      },
    });
    server = await startServer(config);
    const admin = await openLocalAdmin(config);
    await admin.createUser({ email: "ann@example.org", name: "Ann", platformAdmin: false });
    ({ token } = await admin.createToken({ email: "ann@example.org" }));
    await admin.close();
    const made = await platform("POST", "/v1/projects", { name: "one" });
    project = `/v1/projects/${z.object({ project: z.object({ id: z.string() }) }).parse(made).project.id}`;
    ({ key } = created.parse(await platform("POST", `${project}/keys`, { name: "mine" })));
  });
  afterAll(async () => {
    await server.close();
    provider.close();
    rmSync(dataDir, { recursive: true });
  });

  test("is empty before the first call, then lists each call as its caller knows it, without any content", async () => {
    expect(await usage()).toMatchObject({ groupBy: ["day"], totals: { calls: 0 }, groups: [] });
    const good = await ask("cloud/small");
    const bad = await ask("cloud/large");
    await vi.waitFor(async () => expect((await calls()).calls).toHaveLength(2));
    const told = await calls();
    expect(told.calls.map(({ requestId }) => requestId)).toEqual([bad, good]);
    expect(told.calls[0]).toMatchObject({ outcome: "model_not_found", costNanoDollars: 0, upstream: null });
    expect(told.calls[1]).toMatchObject({
      keyId: key.id,
      agentId: null,
      model: "cloud/small",
      upstream: "cloud",
      dialect: "chat",
      stream: false,
      outcome: "ok",
      status: 200,
      inputTokens: 100,
      cachedInputTokens: 60,
      outputTokens: 20,
      estimated: false,
      costNanoDollars: COST,
      attempts: 1,
    });
    expect(JSON.stringify(told)).not.toContain("secret");
    const { totals, groups } = await usage("?groupBy=model,outcome,key");
    expect(totals).toMatchObject({ calls: 2, costNanoDollars: COST, cachedInputTokens: 60 });
    expect(groups).toEqual([
      expect.objectContaining({ model: null, outcome: "model_not_found", keyId: key.id, calls: 1 }),
      expect.objectContaining({ model: "cloud/small", outcome: "ok", keyId: key.id, calls: 1 }),
    ]);
  });

  test("can be filtered and read page by page", async () => {
    expect((await calls("?outcome=ok")).calls).toHaveLength(1);
    expect((await calls(`?keyId=${key.id}&model=cloud/small`)).calls).toHaveLength(1);
    expect((await calls("?keyId=key_other")).calls).toEqual([]);
    const first = await calls("?pageSize=1");
    const second = await calls(`?pageSize=1&pageToken=${first.nextPageToken}`);
    expect([...first.calls, ...second.calls].map(({ outcome }) => outcome)).toEqual(["model_not_found", "ok"]);
    expect(second.nextPageToken).toBe("");
  });

  test("continues at the position and the time of a page token", async () => {
    const { groups } = await usage(
      `?groupBy=model&pageToken=${encodePageToken(`0.${Date.now() + 7_200_000}.1.model`)}`,
    );
    expect(groups).toMatchObject([{ model: null, calls: 1 }]);
    const none = await usage(`?groupBy=model&pageToken=${encodePageToken("0.3600000.0.model")}`);
    expect(none).toMatchObject({ from: "1970-01-01T00:00:00.000Z", totals: { calls: 0 }, groups: [] });
  });

  test.each([
    ["/usage?groupBy=day,colour", "groupBy[1]"],
    ["/usage?groupBy=", "groupBy[0]"],
    ["/usage?groupBy=day,day", "groupBy"],
    ["/usage?from=yesterday", "from"],
    ["/usage?from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z", "from"],
    ["/usage?pageToken=x", "pageToken"],
    [`/usage?groupBy=day&pageToken=${encodePageToken("0.3600000.500.model")}`, "pageToken"],
    [`/usage?groupBy=day&pageToken=${encodePageToken("day")}`, "pageToken"],
    ["/usage/calls?to=2026-03-02", "to"],
    ["/usage/calls?pageToken=x", "pageToken"],
    ["/usage/calls?model=%1b", "model"],
  ])("is rejected for %s, naming the parameter", async (path, param) => {
    const { error } = refused.parse(await platform("GET", `${project}${path}`));
    expect(error).toMatchObject({ code: "invalid_request", param });
  });

  test("includes what a key has spent, in the key itself", async () => {
    const spent = { total: COST, daily: COST, monthly: COST };
    expect(await platform("GET", `${project}/keys/${key.id}`)).toMatchObject({ spent });
    expect(await platform("GET", `${project}/keys`)).toMatchObject({ keys: [{ id: key.id, spent }] });
  });

  test("is written completely when the server stops, once", async () => {
    await ask("cloud/small");
    await server.close();
    server = await startServer(config);
    expect(await usage("?groupBy=outcome")).toMatchObject({ totals: { calls: 3, costNanoDollars: 2 * COST } });
    expect((await calls()).calls).toHaveLength(3);
  });
});
