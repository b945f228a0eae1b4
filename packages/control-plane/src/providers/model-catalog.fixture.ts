import type { EngineTarget } from "../inference/ports.ts";
import { TestClock } from "../testing.fixture.ts";
import type { Tunnels } from "./model-candidates.ts";
import { ProjectModelCatalog } from "./model-catalog.ts";
import { ModelDiscovery } from "./model-discovery.ts";
import type { ProviderModel } from "./provider.ts";
import type { ProjectModels } from "./provider-directory.ts";

export const NO_MODELS: ProjectModels = { providers: new Map(), aliases: new Map(), defaultModel: null };

/** A catalog of engines alone. */
export function nodesCatalog(
  engines: () => readonly EngineTarget[],
  tunnels: Tunnels,
  nodeModels: readonly ProviderModel[] = [],
): ProjectModelCatalog {
  return new ProjectModelCatalog({
    directory: { find: () => NO_MODELS },
    engines: { list: async () => engines() },
    tunnels,
    discovery: new ModelDiscovery({ clock: new TestClock() }),
    defaultModel: null,
    nodeModels,
  });
}
