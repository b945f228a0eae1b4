import { HttpUpstreams } from "@fairlead/inference/upstreams/http-upstreams";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { SecretSealer } from "../../../access/auth/sealing/sealer.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import { ModelChanges } from "../../names/model-changes.ts";
import { PlatformProviders } from "../platform-providers.ts";
import type { ProvidersConfig } from "../provider-config.ts";
import { ProviderCredentials } from "../provider-credentials.ts";
import { ProviderDirectory } from "../provider-directory.ts";
import { providerStores } from "../provider-stores.ts";
import type { ProviderFinding } from "./provider-check.ts";
import { tryOut } from "./provider-check-service.ts";

interface OfflineCheckDeps {
  readonly db: Kysely<Database>;
  readonly settings: ProvidersConfig;
  readonly sealer: SecretSealer;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface AskedProvider {
  /** Null: the platform's. */
  readonly projectId: string | null;
  readonly name: string;
}

/** Tries providers without a server: for the operator, on the store itself. */
export async function openProviderCheck(deps: OfflineCheckDeps): Promise<{
  readonly names: readonly AskedProvider[];
  readonly ask: (provider: AskedProvider) => Promise<ProviderFinding>;
}> {
  const { db, settings, clock } = deps;
  const directory = new ProviderDirectory({
    ...deps,
    stores: providerStores(db),
    platform: new PlatformProviders(settings.platform, clock.now()),
    credentials: new ProviderCredentials(deps.sealer),
    upstreams: new HttpUpstreams({ authorities: settings.authorities, clock }),
    changes: new ModelChanges(),
    projects: { defaultModelOf: async () => null },
    allowPrivate: settings.allowPrivate,
  });
  const own = await db
    .selectFrom("provider")
    .select(["project_id", "name"])
    .orderBy("project_id")
    .orderBy("name")
    .execute();
  return {
    names: [
      ...settings.platform.map(({ name }) => ({ projectId: null, name })),
      ...own.map(({ project_id: projectId, name }) => ({ projectId, name })),
    ],
    ask: async ({ projectId, name }) => {
      const provider = (await directory.find(projectId ?? "")).providers.get(name);
      if (provider === undefined)
        return { result: "refused", status: null, models: [], message: "The provider was just deleted." };
      return tryOut(provider);
    },
  };
}
