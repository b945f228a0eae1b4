import type { EngineConfig } from "@fairlead/protocol/engine-config";
import type { WorkloadSecret } from "@fairlead/protocol/secrets";

/** The node's secrets by name: which value each has now, and whether the engine gets it without its config naming it. Pure. */
export type HeldSecrets = ReadonlyMap<string, { readonly version: string; readonly providerKey: boolean }>;

/** What the engine needs: what its config names, then the provider keys that people set, as files unless the config says otherwise. */
export function neededSecrets(config: EngineConfig, held: HeldSecrets): WorkloadSecret[] {
  const uses = new Map<string, WorkloadSecret["as"]>();
  for (const [name, { providerKey }] of held) if (providerKey) uses.set(name, "file");
  for (const [name, { as }] of Object.entries(config.secrets ?? {})) uses.set(name, as);
  const version = (name: string): string | null => held.get(name)?.version ?? null;
  const needed = [...uses]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, as]) => ({ name, as, version: version(name) }));
  const registry = config.registryAuthSecret;
  return registry === undefined ? needed : [...needed, { name: registry, as: "registry", version: version(registry) }];
}

/**
 * What of them a running container cannot take up, so that a change starts a new one: which there are, and the values of
 * environment variables. By the names of versions alone: a hash of a value could be guessed.
 */
export function lastingPart(secrets: readonly WorkloadSecret[]): readonly unknown[] {
  return secrets
    .filter(({ as }) => as !== "registry")
    .map(({ name, as, version }) => (as === "env" ? { name, as, version } : { name, as }));
}
