import { keyOfSecret } from "@fairlead/protocol/secrets";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import type { RegistryAuth } from "../runtime/container-runtime.ts";
import type { SecretVault } from "./secret-vault.ts";

/**
 * The registry's login from the secret that `registryAuthSecret` names: `username:password` in one line.
 * @param fetching ends once what can be had now of newer values is in the vault
 */
export function registryAuthFrom(
  vault: Pick<SecretVault, "open" | "versionOf">,
  fetching: () => Promise<void>,
): RegistryAuth {
  return async ({ secrets }: WorkloadSpec) => {
    const login = secrets?.find(({ as }) => as === "registry");
    if (login === undefined) return null;
    // The change that makes a pull try again comes before the changed login does; some registries lock out who fails often.
    if (vault.versionOf(keyOfSecret(login)) !== login.version) await fetching();
    const opened = await vault.open(keyOfSecret(login));
    if (opened === null) throw new Error(`the secret ${login.name}, the registry's login, is not here`);
    const [, username, password] = /^([^:\s]+):(\S+)\s*$/.exec(new TextDecoder().decode(opened)) ?? [];
    if (username === undefined || password === undefined) {
      throw new Error(`the secret ${login.name} is no registry login: it must read username:password`);
    }
    return { username, password };
  };
}
