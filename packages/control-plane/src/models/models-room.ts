import { HttpUpstreams } from "@fairlead/inference/upstreams/http-upstreams";
import type { Fleet } from "../fleet/fleet-room.ts";
import { asRoom, type Ground } from "../room.ts";
import { ProjectModelCatalog } from "./catalog/model-catalog.ts";
import type { ProjectNames } from "./names/project-names.ts";
import { registerAliasRoutes } from "./providers/aliases/alias-routes.ts";
import { AliasService } from "./providers/aliases/alias-service.ts";
import { ProviderCheckService } from "./providers/check/provider-check-service.ts";
import { ModelDiscovery } from "./providers/model-discovery.ts";
import { PlatformProviders } from "./providers/platform-providers.ts";
import { ProviderCredentials } from "./providers/provider-credentials.ts";
import { ProviderDirectory } from "./providers/provider-directory.ts";
import { registerProviderRoutes } from "./providers/provider-routes.ts";
import { ProviderService } from "./providers/provider-service.ts";
import { providerStores } from "./providers/provider-stores.ts";

interface ModelsOptions extends Ground {
  readonly names: ProjectNames;
  readonly fleet: Fleet;
}

/** Providers, aliases, and the catalog of a project's models. */
export function openModels({ config, log, clock, installation, projects, ...options }: ModelsOptions) {
  const { names, fleet, idempotency } = options;
  const { engines, tunnels } = fleet;
  const { db, sealer, audit } = installation;
  const { allowPrivate, authorities, nodeModels, platform: platformProviders } = config.providers;
  const { proxy, inference } = config;
  const { access, modelChanges: changes } = projects;
  const urls = { allowPrivate, trustResolution: proxy.trustResolution && proxy.rules.https !== null };
  const stores = providerStores(db);
  const credentials = new ProviderCredentials(sealer);
  const upstreams = new HttpUpstreams({ ...proxy, proxies: proxy.rules, authorities, clock });
  const platform = new PlatformProviders(platformProviders, clock.now());
  const parts = { stores, credentials, upstreams, platform, changes, projects, names, access, audit, clock, log };
  const directory = new ProviderDirectory({ ...parts, allowPrivate });
  const providers = new ProviderService({ ...parts, urls });
  const providerCheck = new ProviderCheckService({ ...parts, directory });
  const aliases = new AliasService(parts);
  const models = new ProjectModelCatalog({
    directory,
    engines,
    tunnels,
    discovery: new ModelDiscovery({ clock }),
    // The server's, for projects without their own.
    defaultModel: inference.defaultModel ?? null,
    nodeModels,
    // How long a call may wait for nodes.
    maxRetryWaitMs: inference.maxRetryWaitSeconds * 1000,
  });
  return asRoom({
    models,
    routes: (app) => {
      registerProviderRoutes(app, { providers, providerCheck, idempotency });
      registerAliasRoutes(app, aliases);
    },
    close: () => upstreams.close(),
  });
}
