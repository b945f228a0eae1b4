import type { Clock } from "@fairlead/protocol/clock";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { AuditService } from "../audit/audit-service.ts";
import type { ProjectAccess } from "../auth/access.ts";
import type { SecretSealer } from "../auth/sealer.ts";
import type { Database } from "../db/schema.ts";
import { HttpUpstreams } from "../inference/http-upstreams.ts";
import type { EngineDirectory } from "../inference/ports.ts";
import { AliasService } from "./alias-service.ts";
import type { Tunnels } from "./model-candidates.ts";
import { ProjectModelCatalog } from "./model-catalog.ts";
import type { ModelChanges } from "./model-changes.ts";
import { ModelDiscovery } from "./model-discovery.ts";
import type { PlatformProviders } from "./platform-providers.ts";
import type { ProjectNames } from "./project-names.ts";
import { ProviderCheckService } from "./provider-check-service.ts";
import type { ProvidersConfig } from "./provider-config.ts";
import { ProviderCredentials } from "./provider-credentials.ts";
import { ProviderDirectory, type ProviderDirectoryDeps } from "./provider-directory.ts";
import { ProviderService } from "./provider-service.ts";
import { providerStores } from "./provider-stores.ts";

export interface ProviderServicesDeps {
  readonly db: Kysely<Database>;
  readonly settings: ProvidersConfig;
  /** The server's, where a project says nothing else. */
  readonly defaultModel: string | null;
  readonly platform: PlatformProviders;
  readonly names: ProjectNames;
  readonly changes: ModelChanges;
  readonly projects: ProviderDirectoryDeps["projects"];
  readonly engines: EngineDirectory;
  readonly tunnels: Tunnels;
  readonly sealer: SecretSealer;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly clock: Clock;
  readonly log: Logger;
}

/** All that this room offers to the composition root, joined. */
export interface ProviderServices {
  readonly providers: ProviderService;
  readonly providerCheck: ProviderCheckService;
  readonly aliases: AliasService;
  readonly models: ProjectModelCatalog;
  readonly upstreams: HttpUpstreams;
}

export function createProviderServices(deps: ProviderServicesDeps): ProviderServices {
  const { settings, clock, engines, tunnels, defaultModel } = deps;
  const { allowPrivate, authorities, nodeModels } = settings;
  const stores = providerStores(deps.db);
  const credentials = new ProviderCredentials(deps.sealer);
  const upstreams = new HttpUpstreams({ authorities, clock });
  const directory = new ProviderDirectory({ ...deps, stores, credentials, upstreams, allowPrivate });
  const discovery = new ModelDiscovery({ clock });
  return {
    providers: new ProviderService({ ...deps, stores, credentials, upstreams, urls: { allowPrivate } }),
    providerCheck: new ProviderCheckService({ ...deps, directory }),
    aliases: new AliasService({ ...deps, stores }),
    models: new ProjectModelCatalog({ directory, engines, tunnels, discovery, defaultModel, nodeModels }),
    upstreams,
  };
}
