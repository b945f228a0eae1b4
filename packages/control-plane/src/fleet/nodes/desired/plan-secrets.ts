import type { EngineConfig } from "@fairlead/protocol/engine-config";
import type { WorkloadSecret } from "@fairlead/protocol/secrets";

/** The node's secrets by name: their current versions, and whether the engine gets them without its config naming them. Pure. */
export type HeldSecrets = ReadonlyMap<string, { readonly version: string; readonly providerKey: boolean }>;

/** The engine's secrets: those its config names, then the users' provider keys, as files unless the config says otherwise. */
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
 * The part of the secrets that a running container cannot reload, so that a change needs a new container: the list of
 * secrets and the versions of environment variables. Uses versions, because hashes of values could be guessed.
 */
export function lastingPart(secrets: readonly WorkloadSecret[]): readonly unknown[] {
  return secrets
    .filter(({ as }) => as !== "registry")
    .map(({ name, as, version }) => (as === "env" ? { name, as, version } : { name, as }));
}
