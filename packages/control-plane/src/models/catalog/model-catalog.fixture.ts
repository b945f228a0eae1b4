import type { EngineTarget } from "@fairlead/inference/ports/ports";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { ModelDiscovery } from "../providers/model-discovery.ts";
import type { ProviderModel } from "../providers/provider.ts";
import type { ProjectModels } from "../providers/provider-directory.ts";
import type { Tunnels } from "./model-candidates.ts";
import { ProjectModelCatalog } from "./model-catalog.ts";

export const NO_MODELS: ProjectModels = { providers: new Map(), aliases: new Map(), defaultModel: null };

export const NOBODY_RETURNS: Omit<Tunnels, "get"> = {
  lostAt: () => null,
  isReturning: () => false,
  arrival: async () => false,
};

/** A catalog of engines alone. */
export function nodesCatalog(
  engines: () => readonly EngineTarget[],
  tunnels: Pick<Tunnels, "get">,
  nodeModels: readonly ProviderModel[] = [],
): ProjectModelCatalog {
  return new ProjectModelCatalog({
    directory: { find: () => NO_MODELS },
    engines: { list: async () => engines() },
    tunnels: { ...NOBODY_RETURNS, get: (nodeId) => tunnels.get(nodeId) },
    maxRetryWaitMs: 0,
    discovery: new ModelDiscovery({ clock: new TestClock() }),
    defaultModel: null,
    nodeModels,
  });
}
