import { keyOfSecret } from "@fairlead/protocol/secrets";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import type { RegistryAuth } from "../runtime/container-runtime.ts";
import { registryOf } from "../runtime/docker/docker-answers.ts";
import type { SecretVault } from "./secret-vault.ts";

const DOCKER_HUB = "docker.io";
/** Names of Docker Hub's registry. */
const HUB_NAMES: ReadonlySet<string> = new Set([
  "https://index.docker.io/v1/",
  "index.docker.io",
  "registry-1.docker.io",
]);

/**
 * Reads the registry login from the secret named by `registryAuthSecret`: `registry username:password` in one line. It is sent only to that
 * registry, because users who cannot read the secret can set the image name.
 * @param fetching resolves when available updates are in the vault
 */
export function registryAuthFrom(
  vault: Pick<SecretVault, "open" | "versionOf">,
  fetching: () => Promise<void>,
): RegistryAuth {
  return async ({ image, secrets }: WorkloadSpec) => {
    const login = secrets?.find(({ as }) => as === "registry");
    if (login === undefined) return null;
    // The new login may arrive after the change that triggers the pull. Retrying with the old one could lock out the account.
    if (vault.versionOf(keyOfSecret(login)) !== login.version) await fetching();
    const opened = await vault.open(keyOfSecret(login));
    if (opened === null) throw new Error(`the secret ${login.name} with the registry login has not been delivered`);
    const text = new TextDecoder().decode(opened);
    const [, registry, username, password] = /^(\S+) ([^:\s]+):(\S+)\s*$/.exec(text) ?? [];
    if (registry === undefined || username === undefined || password === undefined) {
      const form = "registry.example.com username:password";
      throw new Error(`the secret ${login.name} is not a registry login: expected ${form}`);
    }
    const wanted = nameOf(registryOf(image));
    if (nameOf(registry) !== wanted) {
      throw new Error(`the secret ${login.name} is a login for ${registry}, but the image is from ${wanted}`);
    }
    return { username, password };
  };
}

function nameOf(registry: string): string {
  return HUB_NAMES.has(registry) ? DOCKER_HUB : registry.toLowerCase();
}
