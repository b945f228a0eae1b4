import { brotliCompressSync, gzipSync } from "node:zlib";
import type { ScriptedCall } from "@fairlead/inference/testing/scripted-upstream";
import type { FarEnd } from "@fairlead/inference/upstreams/upstream.contract";
import { DomainError } from "@fairlead/protocol/errors";
import type { ProviderCheck } from "@fairlead/protocol/providers";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { OWNER, PROJECT, type ProviderFixture, providerFixture } from "../provider.fixture.ts";
import type { ProviderSettings } from "../provider.ts";
import { judgeFailure } from "./provider-check.ts";

const SECRET = "sk-s3cret-of-acme";
const ID = "prj_1:acme";
const NAME = { projectId: PROJECT, name: "acme" };

let fixture: ProviderFixture;
beforeEach(async () => {
  fixture = await providerFixture();
});
afterEach(() => fixture.close());

async function create(settings: ProviderSettings = { preset: null }, credential: string | undefined = SECRET) {
  const baseUrl = "https://api.example.com/v1";
  await fixture.providers.create(OWNER, { ...NAME, baseUrl, credential, settings });
}

type Reply = readonly [status: number, text: string];

/** Checks the provider, which gives these answers in turn. */
async function check(...replies: readonly Reply[]): Promise<ProviderCheck> {
  const checking = fixture.check.check(OWNER, NAME);
  for (const [at, [status, text]] of replies.entries()) {
    const call = await callAt(at);
    call.respond(status, { "content-type": "application/json" });
    call.write(text);
    call.end();
  }
  return checking;
}

async function callAt(at: number): Promise<ScriptedCall> {
  const { calls } = fixture.upstreams.of(ID);
  await vi.waitFor(() => expect(calls.length).toBeGreaterThan(at));
  const call = calls[at];
  if (call === undefined) throw new Error("no such call");
  return call;
}

const asked = async (at = 0): Promise<Awaited<FarEnd["request"]>> => (await callAt(at)).request;
const LIST = '{"data":[{"id":"a"},{"id":"b"}]}';

describe("the check of a provider", () => {
  test("lists its models the same way as calls are sent", async () => {
    await create();
    expect(await check([200, LIST])).toMatchObject({ result: "ok", status: 200, models: ["a", "b"] });
    expect(await asked()).toMatchObject({ path: "/v1/models" });
    expect(fixture.upstreams.last(ID)?.headers["authorization"]).toBe(`Bearer ${SECRET}`);
  });

  test.each([
    ["gzip", gzipSync(LIST), "ok"],
    ["br", brotliCompressSync(LIST), "ok"],
    ["gzip", Buffer.from(LIST), "unreachable"],
    ["gzip", gzipSync(Buffer.alloc(9 * 1024 * 1024, " ")), "unreachable"],
    ["compress", Buffer.from(LIST), "unreachable"],
  ])("reads a list in %s (%#), although it requested an uncompressed one", async (coding, bytes, result) => {
    await create();
    const checking = fixture.check.check(OWNER, NAME);
    const call = await callAt(0);
    call.respond(200, { "content-type": "application/json", "content-encoding": coding });
    call.write(bytes);
    call.end();
    expect(await checking).toMatchObject({ result, models: result === "ok" ? ["a", "b"] : [] });
  });

  test("says which models in the settings are not listed", async () => {
    await create({ preset: null, models: [{ name: "b" }, { name: "gone" }] });
    expect(await check([200, LIST])).toMatchObject({
      result: "ok",
      models: ["b", "gone"],
      message: expect.stringMatching(/not these models from the settings: gone/),
    });
  });

  test.each([401, 403])(
    "says that the credential was refused (%i), without quoting text that may contain it",
    async (status) => {
      await create();
      const found = await check([status, `{"error":{"message":"Incorrect API key provided: ${SECRET}"}}`]);
      expect(found).toMatchObject({ result: "credential_refused", status, models: [] });
      expect(JSON.stringify(found)).not.toContain(SECRET);
    },
  );

  test("says that a credential is required if none is set or it cannot be decrypted", async () => {
    await create({ preset: null }, undefined);
    await fixture.providers.update(OWNER, { ...NAME, credential: null, settings: {} });
    expect((await check([401, ""])).message).toMatch(/none is set/);
    await fixture.store.db.updateTable("provider").set({ sealed_credential: "lost-0." }).execute();
    fixture.clock.advance(1000);
    const checking = fixture.check.check(OWNER, NAME);
    const call = await callAt(1);
    call.respond(401, {});
    call.end();
    expect((await checking).message).toMatch(/Set it again/);
  });

  test("quotes the provider's message, with the credential redacted", async () => {
    await create();
    const words = `You said ${SECRET}\\u001b[31m and more: ${"x".repeat(1000)}`;
    const found = await check([500, `{"error":{"message":"${words}"}}`]);
    expect(found).toMatchObject({ result: "refused", status: 500 });
    expect(found.message).toContain("You said [credential] [31m and more");
    expect(found.message.length).toBeLessThan(400);
  });

  test.each([
    [[404, "<html>"], "not_found"],
    [[200, "<html>Welcome</html>"], "not_understood"],
    [[200, '{"object":"list"}'], "not_understood"],
    [[302, ""], "refused"],
    [[503, "busy"], "refused"],
  ] as const)("interprets %j", async (reply, result) => {
    await create();
    expect(await check(reply)).toMatchObject({ result, status: reply[0] });
  });

  test("accepts the models in the settings if the provider lists none", async () => {
    await create({ preset: null, models: [{ name: "m" }] });
    expect(await check([404, ""])).toMatchObject({ result: "ok", models: ["m"] });
  });

  test("checks the credential separately if the list is public", async () => {
    await create({ preset: "openrouter" });
    expect(await check([200, LIST], [401, "{}"])).toMatchObject({ result: "credential_refused" });
    expect(await asked(1)).toMatchObject({ path: "/v1/key" });
  });

  test("sends an empty call to a provider without a list, and takes an input error as success", async () => {
    await create({ preset: "anthropic" });
    expect(await check([400, '{"error":{"message":"messages: required"}}'])).toMatchObject({
      result: "ok",
      status: 400,
    });
    const request = await asked();
    expect(request).toMatchObject({ path: "/v1/chat/completions" });
    expect(request.body.toString()).toBe("{}");
  });

  test.each([
    [401, '{"error":{}}', "credential_refused"],
    [404, '{"error":{"code":"DeploymentNotFound"}}', "ok"],
    [404, "<html>", "not_found"],
    [500, "", "refused"],
  ] as const)("interprets %i %s as the response to an empty call", async (status, text, result) => {
    await create({ preset: "azure-openai" });
    expect(await check([status, text])).toMatchObject({ result });
  });

  test("rejects a response that is too large, and aborts it", async () => {
    await create();
    const checking = fixture.check.check(OWNER, NAME);
    const call = await callAt(0);
    call.respond(200, {});
    for (let piece = 0; piece < 9; piece++) call.write(Buffer.alloc(1024 * 1024, 32));
    expect(await checking).toMatchObject({ result: "unreachable", message: expect.stringContaining("too large") });
    expect(call.closed).toBe(true);
  });

  test("says why there is no response", () => {
    const error = new DomainError("upstream_failed", "connection refused");
    expect(judgeFailure({ facts: { models: [], discovery: true } }, error)).toMatchObject({
      result: "unreachable",
      message: "Connection refused.",
    });
  });
});
