import { isUniqueViolation } from "@fairlead/hosting/errors/store-errors";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { NEW_NODE } from "../../fleet/nodes/node.ts";
import { NodeStore } from "../../fleet/nodes/records/node-store.ts";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { insertProject, insertUser, type OpenStore } from "../../testing.fixture.ts";
import type { AliasRecord } from "./aliases/alias.ts";
import type { ProviderRecord } from "./provider.ts";
import { type ProviderStores, providerStores } from "./provider-stores.ts";

const PROVIDER: ProviderRecord = {
  projectId: "prj_1",
  name: "acme",
  userId: "usr_1",
  baseUrl: "https://api.example.com/v1",
  settings: {
    preset: null,
    headers: { "x-title": 'a "b"' },
    models: [{ name: "org/large", contextTokens: 9, prices: { input: 1, output: 2, perRequest: 0 } }],
  },
  sealedCredential: "v1.sealed",
  createdAt: 1,
  updatedAt: 9e12,
};
const ALIAS: AliasRecord = { projectId: "prj_1", name: "fast", targets: ["acme/ü", "b/c"], createdAt: 1, updatedAt: 2 };

export function providerStoreContract(name: string, open: OpenStore): void {
  describe(`the provider stores on ${name}`, () => {
    let store: OpenedDatabase;
    let stores: ProviderStores;

    beforeEach(async () => {
      store = await open();
      stores = providerStores(store.db);
      await insertUser(store, "usr_1");
      await insertProject(store, "prj_1", "usr_1");
      await insertProject(store, "prj_2", "usr_1");
    });
    afterEach(() => store.close());

    test("return a provider as it was inserted, and only to its project", async () => {
      await stores.providers.insert(PROVIDER);
      await stores.providers.insert({ ...PROVIDER, projectId: "prj_2", sealedCredential: null });
      expect(await stores.providers.find("prj_1", "acme")).toEqual(PROVIDER);
      expect(await stores.providers.list("prj_2")).toMatchObject([{ projectId: "prj_2", sealedCredential: null }]);
      expect(await stores.providers.find("prj_1", "other")).toBeNull();
      await expect(stores.providers.insert(PROVIDER)).rejects.toSatisfy(isUniqueViolation);
    });

    test("change and delete one project's provider, and leave another project's provider of that name", async () => {
      const other = { ...PROVIDER, projectId: "prj_2" };
      for (const record of [PROVIDER, other]) await stores.providers.insert(record);
      const changed = { ...PROVIDER, baseUrl: "https://b.example.com", settings: { preset: "openai" as const } };
      await stores.providers.update(changed);
      expect(await stores.providers.find("prj_1", "acme")).toEqual(changed);
      await stores.providers.delete("prj_1", "acme");
      expect(await stores.providers.list("prj_1")).toEqual([]);
      expect(await stores.providers.list("prj_2")).toEqual([other]);
    });

    test("keep one alias per name in a project, with its targets in order", async () => {
      await stores.aliases.put(ALIAS);
      await stores.aliases.put({ ...ALIAS, targets: ["b/c", "acme/ü"], createdAt: 5, updatedAt: 6 });
      expect(await stores.aliases.find("prj_1", "fast")).toEqual({
        ...ALIAS,
        targets: ["b/c", "acme/ü"],
        updatedAt: 6,
      });
      expect(await stores.aliases.list("prj_2")).toEqual([]);
      await stores.aliases.delete("prj_2", "fast");
      expect(await stores.aliases.list("prj_1")).toHaveLength(1);
      await stores.aliases.delete("prj_1", "fast");
      expect(await stores.aliases.find("prj_1", "fast")).toBeNull();
    });

    test("list the owner of every name in a project: nodes, providers and aliases", async () => {
      await stores.providers.insert(PROVIDER);
      await stores.aliases.put(ALIAS);
      await stores.providers.insert({ ...PROVIDER, projectId: "prj_2", name: "else" });
      await new NodeStore(store.db).insert({
        ...NEW_NODE,
        id: "nod_1",
        projectId: "prj_1",
        userId: "usr_1",
        name: "Box",
        identifier: "box",
        planId: "byo",
        status: "active",
        statusMessage: "",
        statusSince: 0,
        directSecrets: false,
        engineConfig: null,
        createdAt: 0,
      });
      const owners = { acme: "provider", box: "node", fast: "alias" };
      expect(await stores.names.list("prj_1")).toEqual(new Map(Object.entries(owners)));
    });

    test("delete everything with its project", async () => {
      await stores.providers.insert(PROVIDER);
      await stores.aliases.put(ALIAS);
      await store.db.deleteFrom("project").where("id", "=", "prj_1").execute();
      expect(await stores.providers.list("prj_1")).toEqual([]);
      expect(await stores.aliases.list("prj_1")).toEqual([]);
    });
  });
}
