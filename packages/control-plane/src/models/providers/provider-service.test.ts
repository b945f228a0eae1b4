import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { memorySealer } from "../../access/auth/sealing/memory-sealer.ts";
import { OWNER as NODE_OWNER, PROJECT as NODE_PROJECT, nodeFixture } from "../../fleet/nodes/node.fixture.ts";
import { STORES } from "../../testing.fixture.ts";
import {
  ADMIN,
  MEMBER,
  OTHER_PROJECT,
  OWNER,
  PROJECT,
  type ProviderFixture,
  providerFixture,
  STRANGER,
  VIEWER,
} from "./provider.fixture.ts";
import { toProvider } from "./provider.ts";
import type { CreateProvider } from "./provider-service.ts";
import { providerStoreContract } from "./provider-store.contract.ts";

for (const { name, open } of STORES) providerStoreContract(name, open);

const SECRET = "sk-s3cret-of-acme";
const ACME: CreateProvider = {
  projectId: PROJECT,
  name: "acme",
  baseUrl: "https://api.example.com/v1",
  credential: SECRET,
  settings: { preset: null },
};
const NAME = { projectId: PROJECT, name: "acme" };

describe.each(STORES)("providers on $name", ({ open }) => {
  let fixture: ProviderFixture;
  beforeEach(async () => {
    fixture = await providerFixture(open);
  });
  afterEach(() => fixture.close());

  const credentialInUse = async (): Promise<string | undefined> => {
    await fixture.directory.find(PROJECT);
    return fixture.upstreams.last("prj_1:acme")?.headers["authorization"];
  };
  const actions = async (): Promise<string[]> => (await fixture.auditRows()).map(({ action }) => action);

  test("a new provider is returned without its credential, and used with it", async () => {
    const provider = toProvider(await fixture.providers.create(ADMIN, ACME));
    expect(provider).toMatchObject({ name: "acme", scope: "project", hasCredential: true, preset: null });
    expect(JSON.stringify(provider)).not.toContain(SECRET);
    expect(await fixture.providers.get(VIEWER, NAME)).toMatchObject({ baseUrl: "https://api.example.com/v1" });
    expect(await credentialInUse()).toBe(`Bearer ${SECRET}`);
  });

  test("a preset provides the base URL, which is required without one", async () => {
    const { baseUrl: _none, ...bare } = ACME;
    const input = { ...bare, baseUrl: undefined };
    const groq = await fixture.providers.create(OWNER, { ...input, settings: { preset: "groq" } });
    expect(groq.baseUrl).toBe("https://api.groq.com/openai/v1");
    for (const preset of [null, "azure-openai"] as const) {
      const refused = fixture.providers.create(OWNER, { ...input, name: "b", settings: { preset } });
      await expect(refused).rejects.toMatchObject({ code: "invalid_request", param: "baseUrl" });
    }
  });

  test("a preset's loopback address is rejected like any other", async () => {
    const input = { ...ACME, baseUrl: undefined, settings: { preset: "ollama" as const } };
    await expect(fixture.providers.create(OWNER, input)).rejects.toMatchObject({ param: "baseUrl" });
  });

  test("the project can read providers, owners and admins can change them, strangers get not found", async () => {
    await fixture.providers.create(OWNER, ACME);
    for (const who of [OWNER, ADMIN, MEMBER, VIEWER]) {
      expect(await fixture.providers.list(who, PROJECT, { after: null, limit: 9 })).toHaveLength(2);
    }
    const change = { ...NAME, settings: { discovery: true } };
    for (const who of [MEMBER, VIEWER]) {
      const refused = [
        fixture.providers.create(who, { ...ACME, name: "b" }),
        fixture.providers.update(who, change),
        fixture.providers.delete(who, NAME),
        fixture.check.check(who, NAME),
      ];
      for (const call of refused) await expect(call).rejects.toMatchObject({ code: "permission_denied" });
    }
    const hidden = [
      fixture.providers.create(STRANGER, { ...ACME, name: "b" }),
      fixture.providers.list(STRANGER, PROJECT, { after: null, limit: 9 }),
      fixture.providers.get(STRANGER, NAME),
      fixture.providers.update(STRANGER, change),
      fixture.providers.delete(STRANGER, NAME),
      fixture.check.check(STRANGER, NAME),
      fixture.providers.get(OWNER, { projectId: OTHER_PROJECT, name: "acme" }),
    ];
    for (const call of hidden) await expect(call).rejects.toMatchObject({ code: "not_found" });
    expect(await actions()).toEqual(["provider.create"]);
  });

  test("the platform's providers are visible without their address, and cannot be changed in a project", async () => {
    const shared = toProvider(await fixture.providers.get(VIEWER, { projectId: PROJECT, name: "shared" }));
    expect(shared).toMatchObject({ scope: "platform", projectId: "", baseUrl: "", hasCredential: true, headers: {} });
    expect(JSON.stringify(shared)).not.toMatch(/10\.0\.0|platform-credential/);
    const name = { projectId: PROJECT, name: "shared" };
    await expect(fixture.providers.delete(OWNER, name)).rejects.toMatchObject({ code: "permission_denied" });
    const change = fixture.providers.update(OWNER, { ...name, credential: "x", settings: {} });
    await expect(change).rejects.toMatchObject({ code: "permission_denied" });
  });

  test("providers are listed by name, page by page", async () => {
    for (const name of ["zeta", "beta"]) await fixture.providers.create(OWNER, { ...ACME, name });
    const page = async (after: string | null): Promise<string[]> =>
      (await fixture.providers.list(OWNER, PROJECT, { after, limit: 2 })).map(({ name }) => name);
    expect(await page(null)).toEqual(["beta", "shared"]);
    expect(await page("shared")).toEqual(["zeta"]);
  });

  test("a name is unique across providers, aliases, nodes, the platform's providers and the group of all nodes", async () => {
    await fixture.providers.create(OWNER, ACME);
    await fixture.aliases.put(OWNER, { projectId: PROJECT, name: "fast", targets: ["acme/large"] });
    for (const name of ["acme", "fast", "shared", "nodes"]) {
      const refused = fixture.providers.create(OWNER, { ...ACME, name });
      await expect(refused, name).rejects.toMatchObject({ code: "already_exists", param: "name" });
    }
    for (const name of ["acme", "shared", "nodes"]) {
      const refused = fixture.aliases.put(OWNER, { projectId: PROJECT, name, targets: ["nodes/x"] });
      await expect(refused, name).rejects.toMatchObject({ code: "already_exists" });
    }
  });

  test("of concurrent creates with the same name, only one succeeds", async () => {
    const made = [1, 2, 3].map(() => fixture.providers.create(OWNER, ACME));
    const outcomes = await Promise.allSettled(made);
    const refused = outcomes.filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(2);
    for (const outcome of refused) expect(outcome).toMatchObject({ reason: { code: "already_exists" } });
  });

  test("changing the base URL clears the credential", async () => {
    await fixture.providers.create(OWNER, ACME);
    expect(await credentialInUse()).toBe(`Bearer ${SECRET}`);
    const moved = await fixture.providers.update(ADMIN, { ...NAME, baseUrl: "https://evil.example.com", settings: {} });
    expect(moved.hasCredential).toBe(false);
    expect(await credentialInUse()).toBeUndefined();
    const back = await fixture.providers.update(ADMIN, { ...NAME, baseUrl: ACME.baseUrl, settings: {} });
    expect(back.hasCredential).toBe(false);
  });

  test("a credential that is set together with a new base URL is used for that one", async () => {
    await fixture.providers.create(OWNER, ACME);
    const change = { ...NAME, baseUrl: "https://b.example.com/v1", credential: "new-one", settings: {} };
    expect(await fixture.providers.update(OWNER, change)).toMatchObject({ hasCredential: true });
    expect(await credentialInUse()).toBe("Bearer new-one");
  });

  test("the same base URL in another spelling keeps the credential", async () => {
    await fixture.providers.create(OWNER, ACME);
    const same = { ...NAME, baseUrl: "https://API.example.com:443/v1/", settings: {} };
    expect(await fixture.providers.update(OWNER, same)).toMatchObject({ hasCredential: true });
  });

  test("an encrypted credential cannot be decrypted for another base URL, even if the row is modified", async () => {
    await fixture.providers.create(OWNER, ACME);
    await fixture.store.db.updateTable("provider").set({ base_url: "https://evil.example.com" }).execute();
    expect(await credentialInUse()).toBeUndefined();
    expect(fixture.upstreams.last("prj_1:acme")?.baseUrl).toBe("https://evil.example.com");
  });

  test("null removes the credential, and omitted fields are unchanged", async () => {
    const settings = { preset: "groq" as const, models: [{ name: "m" }], discovery: true };
    await fixture.providers.create(OWNER, { ...ACME, settings });
    await fixture.providers.update(OWNER, { ...NAME, settings: { discovery: null, headers: { "x-a": "b" } } });
    const changed = toProvider(await fixture.providers.get(OWNER, NAME));
    expect(changed).toMatchObject({ preset: "groq", headers: { "x-a": "b" }, discovery: false, hasCredential: true });
    await fixture.providers.update(OWNER, { ...NAME, credential: null, settings: {} });
    expect(await fixture.providers.get(OWNER, NAME)).toMatchObject({ hasCredential: false });
  });

  test("an internal base URL is rejected on update as on creation", async () => {
    await fixture.providers.create(OWNER, ACME);
    for (const baseUrl of [
      "http://api.example.com",
      "https://127.0.0.1",
      "https://[::ffff:10.0.0.1]",
      "https://x.local",
    ]) {
      const refused = fixture.providers.update(OWNER, { ...NAME, baseUrl, settings: {} });
      await expect(refused).rejects.toMatchObject({ code: "invalid_request", param: "baseUrl" });
    }
    expect(await fixture.providers.get(OWNER, NAME)).toMatchObject({ baseUrl: ACME.baseUrl, hasCredential: true });
  });

  test("a change without effect is not recorded, and a record contains the names of fields, not their values", async () => {
    await fixture.providers.create(OWNER, ACME);
    await fixture.providers.update(OWNER, { ...NAME, baseUrl: ACME.baseUrl, settings: { discovery: null } });
    expect(await actions()).toEqual(["provider.create"]);
    const settings = { models: [{ name: "secret-project" }] };
    await fixture.providers.update(OWNER, { ...NAME, credential: "another", settings });
    await fixture.providers.delete(OWNER, NAME);
    expect(await actions()).toEqual(["provider.create", "provider.update", "provider.delete"]);
    const rows = await fixture.auditRows();
    expect(JSON.parse(rows[1]?.detail ?? "")).toEqual({ fields: "models,credential", credential: true });
    expect(JSON.stringify(rows)).not.toMatch(/s3cret|another|secret-project/);
  });

  test("a deleted provider is removed with its connections and its credential", async () => {
    await fixture.providers.create(OWNER, ACME);
    await fixture.providers.delete(ADMIN, NAME);
    expect(fixture.upstreams.forgotten).toEqual(["prj_1:acme"]);
    expect(await fixture.store.db.selectFrom("provider").selectAll().execute()).toEqual([]);
    await expect(fixture.providers.get(OWNER, NAME)).rejects.toMatchObject({ code: "not_found" });
    await expect(fixture.providers.delete(OWNER, NAME)).rejects.toMatchObject({ code: "not_found" });
    expect((await fixture.directory.find(PROJECT)).providers.has("acme")).toBe(false);
  });

  test("a project has at most 100 providers", async () => {
    for (let at = 0; at < 100; at++)
      await fixture.providers.create(OWNER, { ...ACME, name: `p${at}`, credential: undefined });
    await expect(fixture.providers.create(OWNER, ACME)).rejects.toMatchObject({ code: "invalid_request" });
  });
});

describe("a credential that was encrypted with another master key", () => {
  test("does not affect other providers, and is reported as lost rather than missing", async () => {
    const fixture = await providerFixture(undefined, { sealer: memorySealer("lost") });
    await fixture.providers.create(OWNER, ACME);
    await fixture.store.db.updateTable("provider").set({ sealed_credential: "other-0." }).execute();
    const { providers } = await fixture.directory.find(PROJECT);
    expect(providers.get("acme")).toMatchObject({ credential: null, credentialLost: true });
    expect(providers.has("shared")).toBe(true);
    await fixture.close();
  });
});

describe("aliases", () => {
  let fixture: ProviderFixture;
  beforeEach(async () => {
    fixture = await providerFixture();
    await fixture.providers.create(OWNER, ACME);
  });
  afterEach(() => fixture.close());
  const fast = { projectId: PROJECT, name: "fast" };
  const put = (targets: readonly string[], who = OWNER) => fixture.aliases.put(who, { ...fast, targets });

  test("are created, changed, listed and deleted, each with an audit record", async () => {
    await put(["acme/large", "shared/big"]);
    expect(await put(["shared/big", "acme/large"])).toMatchObject({ targets: ["shared/big", "acme/large"] });
    await put(["shared/big", "acme/large"]);
    expect(await fixture.aliases.list(VIEWER, PROJECT, { after: null, limit: 9 })).toHaveLength(1);
    await fixture.aliases.delete(ADMIN, fast);
    await expect(fixture.aliases.get(OWNER, fast)).rejects.toMatchObject({ code: "not_found" });
    await expect(fixture.aliases.delete(OWNER, fast)).rejects.toMatchObject({ code: "not_found" });
    const records = (await fixture.auditRows()).map(({ action }) => action);
    expect(records).toEqual(["provider.create", "alias.put", "alias.put", "alias.delete"]);
  });

  test("can be changed only by owners and admins, and strangers get not found", async () => {
    await put(["acme/large"]);
    for (const who of [MEMBER, VIEWER]) {
      await expect(put(["acme/x"], who)).rejects.toMatchObject({ code: "permission_denied" });
      await expect(fixture.aliases.delete(who, fast)).rejects.toMatchObject({ code: "permission_denied" });
    }
    await expect(put(["acme/x"], STRANGER)).rejects.toMatchObject({ code: "not_found" });
    await expect(fixture.aliases.get(STRANGER, fast)).rejects.toMatchObject({ code: "not_found" });
  });

  test("can name only existing providers and nodes, not another alias", async () => {
    await put(["acme/large"]);
    const other = { projectId: PROJECT, name: "other" };
    for (const targets of [
      ["acme/x", "acmee/large"],
      ["shared/big", "fast/x"],
    ]) {
      const refused = fixture.aliases.put(OWNER, { ...other, targets });
      await expect(refused).rejects.toMatchObject({ code: "invalid_request", param: "targets[1]" });
    }
  });
});

describe("a node's identifier", () => {
  test("avoids the names of the platform's providers and of the group of all nodes", async () => {
    const fixture = await nodeFixture();
    const named = async (name: string): Promise<string> =>
      (
        await fixture.nodes.create(NODE_OWNER, {
          projectId: NODE_PROJECT,
          planId: "byo",
          name,
          directSecrets: false,
          engineConfig: null,
        })
      ).identifier;
    expect(await named("OpenAI")).toBe("openai-2");
    expect(await named("Nodes")).toBe("nodes-2");
    const row = { project_id: NODE_PROJECT, name: "fast", targets: "[]", created_at: 0, updated_at: 0 };
    await fixture.store.db.insertInto("model_alias").values(row).execute();
    expect(await named("Fast")).toBe("fast-2");
    await fixture.close();
  });
});
