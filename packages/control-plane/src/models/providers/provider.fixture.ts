import type { EngineTarget } from "@fairlead/inference/ports/ports";
import { ScriptedUpstream } from "@fairlead/inference/testing/scripted-upstream";
import type { HttpTarget } from "@fairlead/inference/upstreams/http-upstreams";
import type { Role } from "@fairlead/protocol/resources";
import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { pino } from "pino";
import { AuditService } from "../../access/audit/audit-service.ts";
import { ProjectAccess } from "../../access/auth/access.ts";
import { memorySealer } from "../../access/auth/sealing/memory-sealer.ts";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import {
  asUser,
  fixedMemberships,
  insertProject,
  insertUser,
  type OpenStore,
  openMemoryStore,
} from "../../testing.fixture.ts";
import { NOBODY_RETURNS } from "../catalog/model-catalog.fixture.ts";
import { ProjectModelCatalog } from "../catalog/model-catalog.ts";
import { ModelChanges } from "../names/model-changes.ts";
import { ProjectNames } from "../names/project-names.ts";
import { AliasService } from "./aliases/alias-service.ts";
import type { BaseUrlRules } from "./base-url.ts";
import { ProviderCheckService } from "./check/provider-check-service.ts";
import { ModelDiscovery } from "./model-discovery.ts";
import { PlatformProviders } from "./platform-providers.ts";
import type { PlatformProvider } from "./provider.ts";
import { ProviderCredentials } from "./provider-credentials.ts";
import { ProviderDirectory } from "./provider-directory.ts";
import { ProviderService } from "./provider-service.ts";
import { providerStores } from "./provider-stores.ts";

export const PROJECT = "prj_1";
export const OTHER_PROJECT = "prj_2";
export const OWNER = asUser("usr_owner");
export const ADMIN = asUser("usr_admin");
export const MEMBER = asUser("usr_member");
export const VIEWER = asUser("usr_viewer");
export const STRANGER = asUser("usr_stranger");

const ROLES: Readonly<Record<string, Role>> = {
  usr_owner: "owner",
  usr_admin: "admin",
  usr_member: "member",
  usr_viewer: "viewer",
};

export const PLATFORM: PlatformProvider = {
  name: "shared",
  baseUrl: "http://10.0.0.5:8000/v1",
  settings: { preset: "vllm", models: [{ name: "big", contextTokens: 1000 }], headers: { "x-inner": "10.0.0.6" } },
  credential: "platform-credential",
};

export type ProviderFixture = Awaited<ReturnType<typeof providerFixture>>;

/** The room on a real store, with upstreams that the test plays. */
export async function providerFixture(
  open: OpenStore = openMemoryStore,
  { platform = [PLATFORM], urls, sealer = memorySealer() }: FixtureOptions = {},
) {
  const store: OpenedDatabase = await open();
  for (const user of ["usr_owner", "usr_stranger"]) await insertUser(store, user);
  for (const project of [PROJECT, OTHER_PROJECT]) await insertProject(store, project, "usr_owner");
  const clock = new TestClock();
  const access = new ProjectAccess(
    fixedMemberships((project, user) => (project === PROJECT ? (ROLES[user] ?? null) : null)),
  );
  const upstreams = new PlayedUpstreams();
  const defaults = new Map<string, string>();
  const engines: EngineTarget[] = [];
  const rules = urls ?? { allowPrivate: false, lookup: async () => [{ address: "93.184.216.34" }] };
  const common = {
    stores: providerStores(store.db),
    names: new ProjectNames(platform.map(({ name }) => name)),
    platform: new PlatformProviders(platform, clock.now()),
    credentials: new ProviderCredentials(sealer),
    changes: new ModelChanges(),
    projects: { defaultModelOf: async (id: string) => defaults.get(id) ?? null },
    audit: new AuditService({ clock, ids: countingIds() }),
    log: pino({ level: "silent" }),
    allowPrivate: rules.allowPrivate,
    urls: rules,
    access,
    upstreams,
    clock,
  };
  const directory = new ProviderDirectory(common);
  const discovery = new ModelDiscovery({ clock });
  return {
    ...common,
    store,
    directory,
    discovery,
    defaults,
    engines,
    providers: new ProviderService(common),
    aliases: new AliasService(common),
    check: new ProviderCheckService({ ...common, directory }),
    catalog: new ProjectModelCatalog({
      directory,
      engines: { list: async () => engines },
      tunnels: { ...NOBODY_RETURNS, get: (nodeId) => (nodeId.endsWith("-lost") ? null : { open: () => unplayed() }) },
      discovery,
      defaultModel: "shared/big",
      maxRetryWaitMs: 0,
      nodeModels: [{ name: "*", prices: { input: 7, output: 7, perRequest: 0 } }],
    }),
    auditRows: () => store.db.selectFrom("audit_event").selectAll().orderBy("id").execute(),
    close: () => store.close(),
  };
}

interface FixtureOptions {
  readonly platform?: readonly PlatformProvider[];
  readonly urls?: BaseUrlRules;
  readonly sealer?: ReturnType<typeof memorySealer>;
}

/** Upstreams in memory, one for each target that was opened. */
export class PlayedUpstreams {
  readonly opened: HttpTarget[] = [];
  readonly forgotten: string[] = [];
  readonly #byId = new Map<string, ScriptedUpstream>();

  open(target: HttpTarget): ScriptedUpstream {
    this.opened.push(target);
    return this.of(target.id);
  }

  /** @param id `prj_1:acme`, `platform:shared` */
  of(id: string): ScriptedUpstream {
    const upstream = this.#byId.get(id) ?? new ScriptedUpstream();
    this.#byId.set(id, upstream);
    return upstream;
  }

  last(id: string): HttpTarget | undefined {
    return this.opened.findLast((target) => target.id === id);
  }

  forget(id: string): void {
    this.forgotten.push(id);
  }
}

export function engine(identifier: string, more: Partial<EngineTarget> = {}): EngineTarget {
  return {
    nodeId: `nod_${identifier}`,
    identifier,
    workload: "engine",
    absence: null,
    models: ["tiny"],
    since: 5000,
    protocols: ["chat"],
    chat: {},
    ...more,
  };
}

function unplayed(): never {
  throw new Error("nothing is sent through the tunnels of this fixture");
}
