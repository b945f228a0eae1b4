import type { Candidate } from "@fairlead/inference/calls/model-catalog";
import type { ProjectId } from "@fairlead/protocol/values/ids";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  engine,
  OTHER_PROJECT,
  OWNER,
  PROJECT,
  type ProviderFixture,
  providerFixture,
} from "../providers/provider.fixture.ts";
import type { CreateProvider } from "../providers/provider-service.ts";

const ACME: CreateProvider = {
  projectId: PROJECT,
  name: "acme",
  baseUrl: "https://api.example.com/v1",
  credential: "sk-acme",
  settings: {
    preset: null,
    protocols: ["responses"],
    timeouts: { firstByteSeconds: 7 },
    forwardHeaders: ["openai-beta"],
    models: [
      { name: "org/large", contextTokens: 9, maxOutputTokens: 5, prices: { input: 4, output: 6, perRequest: 1 } },
    ],
  },
};
const JSON_TYPE = { "content-type": "application/json" };

let fixture: ProviderFixture;
beforeEach(async () => {
  fixture = await providerFixture();
  await fixture.providers.create(OWNER, ACME);
});
afterEach(() => fixture.close());

const project = PROJECT as ProjectId;
const resolve = async (name: string): Promise<readonly Candidate[]> =>
  (await fixture.catalog.resolve(project, name)).candidates;
const upstreams = async (name: string): Promise<string[]> =>
  (await resolve(name)).map(({ upstreamId, model, rank }) => `${rank} ${upstreamId} ${model}`);
const ids = async (): Promise<string[]> => (await fixture.catalog.list(project)).map(({ id }) => id);
const alias = (name: string, targets: readonly string[]) =>
  fixture.aliases.put(OWNER, { projectId: PROJECT, name, targets });

async function answerList(id: string, names: readonly string[]): Promise<void> {
  const upstream = fixture.upstreams.of(id);
  await vi.waitFor(() => expect(upstream.calls.length).toBeGreaterThan(0));
  const call = upstream.calls.at(-1);
  call?.respond(200, JSON_TYPE);
  call?.write(JSON.stringify({ data: names.map((name) => ({ id: name })) }));
  call?.end();
}

describe("a model name", () => {
  test("resolves to the project's provider, with everything that is known about the model", async () => {
    expect(await resolve("acme/org/large")).toMatchObject([
      {
        key: "prj_1:acme",
        upstreamId: "acme",
        kind: "provider",
        rank: 0,
        model: "org/large",
        protocols: ["responses"],
        timeouts: { firstByteMs: 7000, idleMs: 120_000 },
        forwardHeaders: ["openai-beta"],
        contextTokens: 9,
        maxOutputTokens: 5,
        prices: { input: 4, output: 6, perRequest: 1 },
      },
    ]);
  });

  test("resolves to the platform's provider, with its own credential, even in a private network", async () => {
    expect(await resolve("shared/big")).toMatchObject([
      { key: "platform:shared", contextTokens: 1000, prices: null, chat: { outputLimit: "max_completion_tokens" } },
    ]);
    expect(fixture.upstreams.last("platform:shared")).toMatchObject({
      allowPrivate: true,
      headers: { authorization: "Bearer platform-credential", "x-inner": "10.0.0.6" },
    });
    expect(fixture.upstreams.last("prj_1:acme")).toMatchObject({ allowPrivate: false });
  });

  test("resolves only to the node that it names, at the price in the server's settings", async () => {
    fixture.engines.push(engine("box"), engine("rack"));
    expect(await resolve("box/tiny")).toMatchObject([{ key: "nod_box", prices: { input: 7 }, kind: "node" }]);
  });

  test("resolves to every node that serves the model, for the group of all nodes", async () => {
    fixture.engines.push(
      engine("box"),
      engine("rack"),
      engine("cold", { absence: "It starts." }),
      engine("x-lost"),
      engine("other", { models: ["else"] }),
    );
    expect(await upstreams("nodes/tiny")).toEqual(["0 node:box tiny", "0 node:rack tiny"]);
    await expect(resolve("nodes/nothing")).rejects.toMatchObject({ code: "model_not_found" });
  });

  test("that is an alias resolves to its targets in order, skipping those that cannot respond", async () => {
    fixture.engines.push(engine("box"), engine("rack"), engine("cold", { absence: "It starts." }));
    await fixture.aliases.put(OWNER, {
      projectId: PROJECT,
      name: "fast",
      targets: ["nodes/tiny", "acme/org/large", "shared/big"],
    });
    expect(await upstreams("fast")).toEqual([
      "0 node:box tiny",
      "0 node:rack tiny",
      "1 acme org/large",
      "2 shared big",
    ]);
    fixture.engines.length = 0;
    await fixture.providers.delete(OWNER, { projectId: PROJECT, name: "acme" });
    expect(await upstreams("fast")).toEqual(["2 shared big"]);
  });

  test.each([
    "",
    "tiny",
    "/tiny",
    "box/",
    "nobody/tiny",
    "box/other",
    "acme/small",
    "fast/x",
    "ACME/org/large",
    "nodes/",
  ])("%j is unknown", async (name) => {
    fixture.engines.push(engine("box"));
    await alias("fast", ["acme/org/large"]);
    await expect(resolve(name)).rejects.toMatchObject({ code: "model_not_found", param: "model" });
  });

  test("that is known but unavailable is distinguished from an unknown one", async () => {
    fixture.engines.push(engine("cold", { absence: "It starts." }), engine("x-lost"));
    for (const name of ["cold/tiny", "x-lost/tiny", "nodes/tiny"]) {
      await expect(resolve(name), name).rejects.toMatchObject({ code: "no_running_engine" });
    }
  });

  test("of another project's provider or alias is unknown", async () => {
    const elsewhere = fixture.catalog.resolve(OTHER_PROJECT as ProjectId, "acme/org/large");
    await expect(elsewhere).rejects.toMatchObject({ code: "model_not_found" });
  });

  test("that is not in the settings goes to a provider with a discovered list, or with none", async () => {
    await fixture.providers.update(OWNER, { projectId: PROJECT, name: "acme", settings: { discovery: true } });
    expect(await resolve("acme/brand-new")).toMatchObject([{ model: "brand-new", prices: null }]);
    expect(fixture.upstreams.of("prj_1:acme").calls).toEqual([]);
    const settings = { models: null, discovery: false };
    await fixture.providers.update(OWNER, { projectId: PROJECT, name: "acme", settings });
    expect(await resolve("acme/anything")).toMatchObject([{ model: "anything" }]);
  });

  test("resolves to the new settings immediately after a change", async () => {
    await resolve("acme/org/large");
    const settings = { models: [{ name: "small" }] };
    await fixture.providers.update(OWNER, { projectId: PROJECT, name: "acme", settings });
    await expect(resolve("acme/org/large")).rejects.toMatchObject({ code: "model_not_found" });
    expect(await resolve("acme/small")).toHaveLength(1);
    await alias("fast", ["acme/small"]);
    expect(await resolve("fast")).toHaveLength(1);
  });

  test("resolves while the store is unavailable, as long as known keys work", async () => {
    await resolve("acme/org/large");
    await fixture.store.close();
    for (let minute = 0; minute < 4; minute++) {
      fixture.clock.advance(60_000);
      expect(await resolve("acme/org/large")).toHaveLength(1);
    }
    fixture.clock.advance(120_000);
    await expect(resolve("acme/org/large")).rejects.toThrow();
    fixture = await providerFixture();
  });

  test("resolves without the store within a second of the last read", async () => {
    await resolve("acme/org/large");
    const list = vi.spyOn(fixture.stores.providers, "list");
    for (let call = 0; call < 100; call++) await resolve("acme/org/large");
    expect(list).not.toHaveBeenCalled();
    fixture.clock.advance(1000);
    await resolve("acme/org/large");
    expect(list).toHaveBeenCalledTimes(1);
  });
});

describe("a platform that no longer allows private networks", () => {
  test("sends nothing over plain HTTP, whatever was stored before", async () => {
    await fixture.store.db.updateTable("provider").set({ base_url: "http://api.example.com" }).execute();
    fixture.clock.advance(1000);
    const [candidate] = await resolve("acme/org/large");
    expect(() => candidate?.open()).toThrow(expect.objectContaining({ code: "not_configured" }));
    const update = { projectId: PROJECT, name: "acme", settings: { discovery: true } };
    await fixture.providers.update(OWNER, update);
    await fixture.store.db.updateTable("provider").set({ base_url: "http://api.example.com" }).execute();
    expect(await ids()).toContain("acme/org/large");
  });
});

describe("the default model", () => {
  test("is the project's, otherwise the server's", async () => {
    expect(await fixture.catalog.defaultModel(project)).toBe("shared/big");
    fixture.defaults.set(PROJECT, "fast");
    fixture.changes.emit(PROJECT);
    expect(await fixture.catalog.defaultModel(project)).toBe("fast");
    expect(await fixture.catalog.defaultModel(OTHER_PROJECT as ProjectId)).toBe("shared/big");
  });
});

describe("the model list", () => {
  test("contains what can be called: models of providers and nodes, their group if there is a choice, and aliases", async () => {
    fixture.engines.push(
      engine("box"),
      engine("rack", { models: ["tiny", "more"] }),
      engine("cold", { absence: "It starts." }),
    );
    await alias("fast", ["nodes/tiny"]);
    fixture.engines.push(engine("z-lost", { models: ["more"] }));
    await alias("dead", ["nodes/gone"]);
    expect(await ids()).toEqual([
      "acme/org/large",
      "box/tiny",
      "fast",
      "nodes/tiny",
      "rack/more",
      "rack/tiny",
      "shared/big",
    ]);
  });

  test("contains context and prices if they are known", async () => {
    const prices = { input: 4, cached_input: 4, output: 6, per_request: 1 };
    const large = { object: "model", owned_by: "acme", context_length: 9, max_output_tokens: 5, prices };
    expect(await fixture.catalog.entry(project, "acme/org/large")).toEqual({
      ...large,
      id: "acme/org/large",
      created: fixture.clock.now() / 1000,
    });
    await alias("fast", ["acme/org/large"]);
    expect(await fixture.catalog.entry(project, "fast")).toMatchObject({ ...large, owned_by: "alias", id: "fast" });
    const [big] = (await fixture.catalog.list(project)).filter(({ id }) => id === "shared/big");
    expect(big).toMatchObject({ context_length: 1000 });
    expect(big).not.toHaveProperty("prices");
  });

  test("contains the models that providers list, and concurrent readers cause one request", async () => {
    await fixture.providers.update(OWNER, { projectId: PROJECT, name: "acme", settings: { discovery: true } });
    const looks = [ids(), ids(), ids()];
    await answerList("prj_1:acme", ["b", "org/large"]);
    for (const look of looks) expect(await look).toEqual(["acme/b", "acme/org/large", "shared/big"]);
    const [call, ...more] = fixture.upstreams.of("prj_1:acme").calls;
    expect(more).toEqual([]);
    expect(await call?.request).toMatchObject({ path: "/v1/models" });
  });

  test("keeps the last list when a provider does not respond, and retries soon", async () => {
    await fixture.providers.update(OWNER, { projectId: PROJECT, name: "acme", settings: { discovery: true } });
    const first = ids();
    await answerList("prj_1:acme", ["b"]);
    await first;
    const upstream = fixture.upstreams.of("prj_1:acme");
    fixture.clock.advance(300_000);
    expect(await ids()).toContain("acme/b");
    await vi.waitFor(() => expect(upstream.calls).toHaveLength(2));
    upstream.calls[1]?.respond(503, {});
    upstream.calls[1]?.end();
    await vi.waitFor(async () => expect(await ids()).toContain("acme/b"));
    expect(upstream.calls).toHaveLength(2);
    fixture.clock.advance(30_000);
    expect(await ids()).toContain("acme/b");
    await vi.waitFor(() => expect(upstream.calls).toHaveLength(3));
    upstream.calls[2]?.respond(200, JSON_TYPE);
    upstream.calls[2]?.write('{"data":[{"id":"c"}]}');
    upstream.calls[2]?.end();
    await vi.waitFor(async () => expect(await ids()).toContain("acme/c"));
    expect(await ids()).not.toContain("acme/b");
  });

  test("is fetched again when the provider's settings change, as a new base URL can list other models", async () => {
    await fixture.providers.update(OWNER, { projectId: PROJECT, name: "acme", settings: { discovery: true } });
    const first = ids();
    await answerList("prj_1:acme", ["b"]);
    await first;
    fixture.clock.advance(1);
    await fixture.providers.update(OWNER, {
      projectId: PROJECT,
      name: "acme",
      baseUrl: "https://b.example.com",
      settings: {},
    });
    const second = ids();
    await vi.waitFor(() => expect(fixture.upstreams.of("prj_1:acme").calls).toHaveLength(2));
    await answerList("prj_1:acme", ["c"]);
    expect(await second).toEqual(["acme/c", "acme/org/large", "shared/big"]);
  });
});
