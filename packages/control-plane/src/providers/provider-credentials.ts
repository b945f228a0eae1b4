import type { SecretSealer } from "../auth/sealer.ts";
import type { ProviderRecord } from "./provider.ts";

type Owner = Pick<ProviderRecord, "projectId" | "name" | "baseUrl">;

/** Sealed to the place that it is for: what was sealed for one base URL opens under no other, whoever wrote the row (design §8). */
export class ProviderCredentials {
  readonly #sealer: SecretSealer;

  constructor(sealer: SecretSealer) {
    this.#sealer = sealer;
  }

  seal(owner: Owner, credential: string): Promise<string> {
    return this.#sealer.seal(Buffer.from(credential), credentialContext(owner));
  }

  /** @returns null where there is none. @throws UnsealError */
  async open(record: ProviderRecord): Promise<string | null> {
    if (record.sealedCredential === null) return null;
    return Buffer.from(await this.#sealer.open(record.sealedCredential, credentialContext(record))).toString();
  }
}

/** What a provider's credential is sealed under. */
export function credentialContext({ projectId, name, baseUrl }: Owner): string {
  return `provider credential ${projectId} ${name} ${baseUrl}`;
}
